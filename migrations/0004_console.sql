-- Browser sessions of the web console. Only the digests of their cookies are stored. A session ends with the user or the
-- developer token that opened it, and at expires_at in any case.

create table console_user_sessions (
  app_id uuid not null,
  digest bytea not null,
  user_id uuid not null,
  session_epoch integer not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (app_id, digest),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create index console_user_sessions_user on console_user_sessions (app_id, user_id);
create index console_user_sessions_expiry on console_user_sessions (expires_at);

create table console_developer_sessions (
  digest bytea primary key,
  token_digest bytea not null references developer_tokens (digest) on delete cascade,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index console_developer_sessions_token on console_developer_sessions (token_digest);
create index console_developer_sessions_expiry on console_developer_sessions (expires_at);
