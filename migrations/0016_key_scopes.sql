-- A key may end at a time, and a secret key may reach only a part of the API (src/tenancy/key-scopes.ts). Null: neither.
alter table api_keys add column expires_at timestamptz;
alter table api_keys add column scopes text[];
