-- Links that sign a developer in to the console once. Only the digests of their codes are stored, so that any process of
-- the server takes them, and they end with their developer token.
create table console_sign_in_links (
  digest bytea primary key,
  token_digest bytea not null references developer_tokens (digest) on delete cascade,
  expires_at timestamptz not null
);
create index console_sign_in_links_token on console_sign_in_links (token_digest, expires_at);
create index console_sign_in_links_expiry on console_sign_in_links (expires_at);
