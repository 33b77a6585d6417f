-- What a user allows an assistant (an OAuth client) at the MCP endpoint. Deleting the row ends it, with all its tokens.
-- Only digests are stored: of the code until it is exchanged, and to notice that it is used again; then of the current
-- refresh token. An older refresh token is recognised by its signature, so no row is kept for it.
create table assistant_grants (
  app_id uuid not null,
  id uuid not null,
  user_id uuid not null,
  session_epoch integer not null,
  -- The publishable key in the address of the endpoint.
  key_id uuid not null,
  client_digest bytea not null,
  client_name text not null,
  client_url text,
  redirect_uri text not null,
  scopes text[] not null,
  code_digest bytea not null,
  code_challenge text not null,
  -- Null until the code is exchanged.
  refresh_digest bytea,
  created_at timestamptz not null,
  used_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (app_id, id),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create index assistant_grants_user on assistant_grants (app_id, user_id);
create index assistant_grants_expiry on assistant_grants (expires_at);
create trigger assistant_grants_changed after delete on assistant_grants
  for each statement execute function announce_tenancy_change();
