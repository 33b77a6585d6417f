-- Developers and their apps, sandboxes, organisations, users, teams, agents, threads and installations, and every
-- credential. All ids are UUIDv7. The primary key of a tenant table begins with app_id, and each of its unique indexes
-- and foreign keys carries app_id, so that the database can be partitioned by app. The nil uuid as sandbox_id means
-- production; each app has that row, and no response shows it.

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
  digest bytea not null,
  -- The first characters, enough to recognise a key in a list.
  hint text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz,
  primary key (app_id, id),
  unique (app_id, digest),
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
  -- Every session and token of a user belongs to an epoch of that user. A change of the password, or the end of all
  -- sessions, begins the next one, and what belongs to an earlier one is over, also what is made at that moment.
  session_epoch integer not null default 0,
  -- When the epoch began: tokens of other issuers that are not younger have ended too.
  sessions_ended_at timestamptz,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id)
);
create unique index users_email on users (app_id, sandbox_id, lower(email)) where email is not null;
create index users_org on users (app_id, org_id);

-- Substring search over users without an extension: an inverted index over hashes of every piece of e-mail and name of
-- one to three letters. The app is part of the hash, so a search in one app never meets the users of another.
create function text_pieces(the_app uuid, the_text text, shortest integer, longest integer) returns bigint[]
language sql immutable parallel safe cost 10000 as $$
  select coalesce(array_agg(distinct hashtextextended(substr(lower(the_text), start, size), uuid_hash_extended(the_app, size))), '{}')
  from generate_series(shortest, longest) size, generate_series(1, length(the_text) - size + 1) start
$$;
create index users_search on users using gin (
  text_pieces(app_id, coalesce(email, '') || chr(10) || coalesce(name, ''), 1, 3)) with (fastupdate = off);

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
-- A lookup key is unique within its owner: an agent that the caller cannot see is no reason to refuse one.
create unique index agents_lookup_key on agents (app_id, sandbox_id, lookup_key,
  coalesce(team_id, user_id, org_id, '00000000-0000-0000-0000-000000000000')) where lookup_key is not null;
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

-- A refresh token works once. When one that was used comes again, its whole family is revoked.
create table refresh_tokens (
  app_id uuid not null,
  digest bytea not null,
  family_id uuid not null,
  user_id uuid not null,
  session_epoch integer not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  revoked_at timestamptz,
  primary key (app_id, digest),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create index refresh_tokens_family on refresh_tokens (app_id, family_id);
create index refresh_tokens_user on refresh_tokens (app_id, user_id);

create table personal_tokens (
  app_id uuid not null,
  id uuid not null,
  user_id uuid not null,
  session_epoch integer not null,
  name text,
  digest bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  primary key (app_id, id),
  unique (app_id, digest),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create index personal_tokens_user on personal_tokens (app_id, user_id);

-- The app that an API key, a refresh token or a personal token belongs to, by the SHA-256 of the credential. This is the
-- only table with an app_id that stays whole when the others are partitioned by app: a request shows its credential
-- before anyone knows the app. Its primary key also makes a credential unique in the whole installation. The session
-- cookies of the console name their app themselves, so they need no row here.
create table credentials (
  digest bytea primary key,
  app_id uuid not null
);

-- Keeps it in step with the three tables, however their rows come and go.
create function add_credentials() returns trigger language plpgsql as $$
begin
  insert into credentials (digest, app_id) select digest, app_id from added;
  return null;
end $$;
create function remove_credentials() returns trigger language plpgsql as $$
begin
  delete from credentials c using gone g where c.digest = g.digest;
  return null;
end $$;
create trigger api_keys_added after insert on api_keys referencing new table as added
  for each statement execute function add_credentials();
create trigger api_keys_removed after delete on api_keys referencing old table as gone
  for each statement execute function remove_credentials();
create trigger refresh_tokens_added after insert on refresh_tokens referencing new table as added
  for each statement execute function add_credentials();
create trigger refresh_tokens_removed after delete on refresh_tokens referencing old table as gone
  for each statement execute function remove_credentials();
create trigger personal_tokens_added after insert on personal_tokens referencing new table as added
  for each statement execute function add_credentials();
create trigger personal_tokens_removed after delete on personal_tokens referencing old table as gone
  for each statement execute function remove_credentials();

-- The networks that each user has signed in from: failed attempts of others do not lock the user out there.
create table sign_in_addresses (
  app_id uuid not null,
  user_id uuid not null,
  address text not null,
  last_at timestamptz not null,
  primary key (app_id, user_id, address),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create index sign_in_addresses_at on sign_in_addresses (last_at);

-- Every process caches callers for a short time. A change tells all of them to read again.
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
create trigger users_changed after update of org_id, org_role, session_epoch or delete on users
  for each statement execute function announce_tenancy_change();
create trigger team_memberships_changed after insert or update or delete on team_memberships
  for each statement execute function announce_tenancy_change();
create trigger sandboxes_changed after insert or delete on sandboxes
  for each statement execute function announce_tenancy_change();

-- Deleting an org deletes the org-level rows of the table that the trigger names. Rows that a team, user or agent owns
-- only lose their org, by the foreign key. The second argument says whether agents can own rows of the table.
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
