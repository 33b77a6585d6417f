-- The audit log, and the use of credentials.

-- What was changed, by which caller, and the result. No foreign keys: an entry outlives the rows it names.
create table audit_entries (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('user', 'secret_key', 'publishable_key', 'developer', 'inbound_url')),
  actor_id uuid not null,
  credential text not null,
  action text not null,
  method text not null,
  route text not null,
  resource text,
  -- Null while the request runs, and permanently when the process died during it.
  status smallint,
  request_id text not null,
  address text,
  -- How many failed attempts the entry counts, where it counts any.
  attempts integer,
  primary key (app_id, id)
);
create index audit_entries_newest on audit_entries (app_id, sandbox_id, at desc, id desc);
create index audit_entries_at on audit_entries (at);

-- The use of each credential per day (UTC).
create table credential_uses (
  app_id uuid not null,
  sandbox_id uuid not null,
  day date not null,
  kind text not null,
  credential_id uuid not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  requests bigint not null,
  refused bigint not null,
  primary key (app_id, sandbox_id, day, kind, credential_id)
);
create index credential_uses_day on credential_uses (day);
