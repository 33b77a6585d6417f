-- The issuer at which the user had signed in when they created the credential. It ends with the issuer. Null if the user
-- signed in with a password, if the app created the credential, and for credentials from before this column.
alter table assistant_grants add column issuer_id uuid,
  add foreign key (app_id, issuer_id) references identity_issuers (app_id, id) on delete cascade;
create index assistant_grants_issuer on assistant_grants (app_id, issuer_id) where issuer_id is not null;
alter table personal_tokens add column issuer_id uuid,
  add foreign key (app_id, issuer_id) references identity_issuers (app_id, id) on delete cascade;
create index personal_tokens_issuer on personal_tokens (app_id, issuer_id) where issuer_id is not null;
alter table console_user_sessions add column issuer_id uuid,
  add foreign key (app_id, issuer_id) references identity_issuers (app_id, id) on delete cascade;
create index console_user_sessions_issuer on console_user_sessions (app_id, issuer_id) where issuer_id is not null;
