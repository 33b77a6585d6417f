-- Who there is: developers and their apps, sandboxes, keys, organisations, users, teams, agents, threads, installations,
-- and every credential. All ids are UUIDv7. Every tenant table's key begins with app_id, and every foreign key carries
-- it. The nil uuid as sandbox_id is production; each app has that row, never shown.

create table developers (
  id uuid primary key,
  name text not null,
  email text,
  password_hash text,
  created_at timestamptz not null default now()
);
create unique index developers_email on developers (lower(email)) where email is not null;

create table developer_tokens (
  digest bytea primary key,
  id uuid not null unique,
  developer_id uuid not null references developers (id) on delete cascade,
  name text,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz
);
create index developer_tokens_developer on developer_tokens (developer_id);

create table apps (
  id uuid primary key,
  developer_id uuid not null references developers (id),
  name text not null,
  -- The HMAC key of this app's capability URLs, wrapped by the root secret.
  capability_key bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index apps_developer on apps (developer_id);

create table sandboxes (
  app_id uuid not null references apps (id) on delete cascade,
  id uuid not null,
  name text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id)
);

create table api_keys (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  type text not null check (type in ('secret', 'publishable')),
  name text,
  digest bytea not null unique,
  -- The first characters, enough to recognise a key in a list.
  hint text not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);

create table orgs (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  name text not null,
  slug text,
  logo_file_id uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);
create unique index orgs_slug on orgs (app_id, sandbox_id, slug) where slug is not null;
create index orgs_logo on orgs (app_id, logo_file_id) where logo_file_id is not null;

create table users (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  email text,
  name text,
  password_hash text,
  org_id uuid,
  org_role text check (org_role in ('admin', 'member', 'viewer')),
  is_system_user boolean not null default false,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id)
);
create unique index users_email on users (app_id, sandbox_id, lower(email)) where email is not null;
create index users_org on users (app_id, org_id);

create table teams (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  name text not null,
  description text,
  org_id uuid,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id)
);
create index teams_org on teams (app_id, org_id);

create table agents (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  name text not null,
  lookup_key text,
  description text,
  identity text,
  default_model text,
  email text,
  phone_number text,
  originator text,
  metadata jsonb not null default '{}',
  org_id uuid,
  team_id uuid,
  user_id uuid,
  profile_picture_file_id uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id),
  foreign key (app_id, team_id) references teams (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade,
  check (num_nonnulls(team_id, user_id) <= 1)
);
create unique index agents_lookup_key on agents (app_id, sandbox_id, lookup_key) where lookup_key is not null;
create index agents_org on agents (app_id, org_id);
create index agents_team on agents (app_id, team_id) where team_id is not null;
create index agents_user on agents (app_id, user_id) where user_id is not null;
create index agents_picture on agents (app_id, profile_picture_file_id) where profile_picture_file_id is not null;

create table team_memberships (
  app_id uuid not null,
  id uuid not null,
  team_id uuid not null,
  user_id uuid,
  agent_id uuid,
  role text not null check (role in ('owner', 'admin', 'member')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, team_id) references teams (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade,
  foreign key (app_id, agent_id) references agents (app_id, id) on delete cascade,
  check (num_nonnulls(user_id, agent_id) = 1)
);
create unique index team_memberships_user on team_memberships (app_id, team_id, user_id) where user_id is not null;
create unique index team_memberships_agent on team_memberships (app_id, team_id, agent_id) where agent_id is not null;
create index team_memberships_of_user on team_memberships (app_id, user_id) where user_id is not null;
create index team_memberships_of_agent on team_memberships (app_id, agent_id) where agent_id is not null;

create table threads (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  title text,
  org_id uuid,
  team_id uuid,
  user_id uuid,
  agent_id uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id),
  foreign key (app_id, team_id) references teams (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade,
  foreign key (app_id, agent_id) references agents (app_id, id) on delete cascade
);
create index threads_agent on threads (app_id, agent_id) where agent_id is not null;

create table installations (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  agent_id uuid not null,
  kind text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, agent_id) references agents (app_id, id) on delete cascade
);
create index installations_agent on installations (app_id, agent_id);

-- Single use; a row that was used already and comes again ends its whole family.
create table refresh_tokens (
  app_id uuid not null,
  digest bytea not null,
  family_id uuid not null,
  user_id uuid not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  revoked_at timestamptz,
  primary key (app_id, digest),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create unique index refresh_tokens_digest on refresh_tokens (digest);
create index refresh_tokens_family on refresh_tokens (app_id, family_id);
create index refresh_tokens_user on refresh_tokens (app_id, user_id);

create table personal_tokens (
  app_id uuid not null,
  id uuid not null,
  user_id uuid not null,
  name text,
  digest bytea not null unique,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  primary key (app_id, id),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create index personal_tokens_user on personal_tokens (app_id, user_id);

-- Counts within fixed windows, shared by all processes (login attempts; rate limits).
create unlogged table rate_counters (
  bucket text not null,
  window_start timestamptz not null,
  hits integer not null,
  primary key (bucket, window_start)
);
create index rate_counters_window on rate_counters (window_start);

-- Every process keeps what it knows of callers for a moment; a change tells all of them to look again.
create function announce_tenancy_change() returns trigger language plpgsql as $$
begin
  perform pg_notify('quarry_tenancy', '');
  return null;
end $$;
create trigger api_keys_changed after update of revoked_at or delete on api_keys
  for each statement execute function announce_tenancy_change();
create trigger developer_tokens_changed after update of revoked_at or delete on developer_tokens
  for each statement execute function announce_tenancy_change();
create trigger personal_tokens_changed after update of revoked_at or delete on personal_tokens
  for each statement execute function announce_tenancy_change();
create trigger users_changed after update of org_id, org_role or delete on users
  for each statement execute function announce_tenancy_change();
create trigger team_memberships_changed after insert or update or delete on team_memberships
  for each statement execute function announce_tenancy_change();
create trigger sandboxes_changed after insert or delete on sandboxes
  for each statement execute function announce_tenancy_change();

-- Deleting an org deletes what is org-level in the table that the trigger names; what a team, user or agent owns only
-- loses its org (by the foreign key). The second argument says whether the table has agents as owners.
create function delete_org_level_rows() returns trigger language plpgsql as $$
begin
  execute format(
    'delete from %I where app_id = $1 and org_id = $2 and team_id is null and user_id is null %s',
    tg_argv[0], case when tg_argv[1] = 'agent' then 'and agent_id is null' else '' end)
  using old.app_id, old.id;
  return old;
end $$;
create trigger delete_agents before delete on orgs for each row execute function delete_org_level_rows('agents', '');
create trigger delete_threads before delete on orgs for each row execute function delete_org_level_rows('threads', 'agent');
