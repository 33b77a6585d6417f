-- Files, their grants, and the blobs to delete.

-- The contents of a file are a blob of their own, named by blob_key and complete before the row exists. A blob belongs
-- to one row. Its key begins with the app's id.
create table files (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  filename text not null,
  content_type text not null,
  size bigint not null,
  checksum bytea not null,
  blob_key text not null,
  width integer,
  height integer,
  shared boolean not null default false,
  provider_metadata jsonb not null default '{}',
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
create unique index files_blob on files (app_id, blob_key);
create index files_newest on files (app_id, sandbox_id, created_at desc, id desc);
create index files_org on files (app_id, org_id) where org_id is not null;
create index files_team on files (app_id, team_id) where team_id is not null;
create index files_user on files (app_id, user_id) where user_id is not null;
create index files_agent on files (app_id, agent_id) where agent_id is not null;

-- Other principals that may read or write a file. principal_id is the nil uuid for a role and for everyone.
create table file_grants (
  app_id uuid not null,
  file_id uuid not null,
  principal_type text not null check (principal_type in ('user', 'team', 'org', 'org_role', 'agent', 'everyone')),
  principal_id uuid not null default '00000000-0000-0000-0000-000000000000',
  principal_role text not null default '' check (principal_role in ('', 'admin', 'member', 'viewer')),
  actions text[] not null,
  position integer not null default 0,
  primary key (app_id, file_id, principal_type, principal_id, principal_role),
  foreign key (app_id, file_id) references files (app_id, id) on delete cascade
);
create index file_grants_principal on file_grants (app_id, principal_type, principal_id);

-- A grant ends with its principal.
create function remove_grants() returns trigger language plpgsql as $$
begin
  delete from file_grants where app_id = old.app_id and principal_type = tg_argv[0] and principal_id = old.id;
  return null;
end $$;
create trigger users_grants after delete on users for each row execute function remove_grants('user');
create trigger teams_grants after delete on teams for each row execute function remove_grants('team');
create trigger orgs_grants after delete on orgs for each row execute function remove_grants('org');
create trigger agents_grants after delete on agents for each row execute function remove_grants('agent');

-- Blobs to delete from due_at on, unless a file refers to them. A blob is listed here when its row is deleted, whatever
-- deleted it, and while it is written, so that a process that dies between blob and row leaves no garbage.
create table doomed_blobs (
  app_id uuid not null,
  blob_key text not null,
  due_at timestamptz not null default now(),
  primary key (app_id, blob_key)
);
create index doomed_blobs_due on doomed_blobs (due_at);

create function doom_blob() returns trigger language plpgsql as $$
begin
  insert into doomed_blobs (app_id, blob_key) values (old.app_id, old.blob_key)
    on conflict (app_id, blob_key) do update set due_at = now();
  return null;
end $$;
create trigger files_removed after delete on files for each row execute function doom_blob();

-- The file of a picture or logo is deleted when another replaces it and when its agent or org is deleted. When the file
-- is deleted first, the agent or org is left without one.
alter table agents add foreign key (app_id, profile_picture_file_id) references files (app_id, id)
  on delete set null (profile_picture_file_id);
alter table orgs add foreign key (app_id, logo_file_id) references files (app_id, id)
  on delete set null (logo_file_id);

create function remove_agent_picture() returns trigger language plpgsql as $$
begin
  delete from files where app_id = old.app_id and id = old.profile_picture_file_id;
  return null;
end $$;
create trigger agents_picture_replaced after update of profile_picture_file_id on agents for each row
  when (old.profile_picture_file_id is distinct from new.profile_picture_file_id) execute function remove_agent_picture();
create trigger agents_picture_removed after delete on agents for each row execute function remove_agent_picture();

create function remove_org_logo() returns trigger language plpgsql as $$
begin
  delete from files where app_id = old.app_id and id = old.logo_file_id;
  return null;
end $$;
create trigger orgs_logo_replaced after update of logo_file_id on orgs for each row
  when (old.logo_file_id is distinct from new.logo_file_id) execute function remove_org_logo();
create trigger orgs_logo_removed after delete on orgs for each row execute function remove_org_logo();

-- Org-level files are deleted with their org. The logo is left to the trigger above: deleting it here would update the
-- org row that is being deleted.
create function delete_org_level_files() returns trigger language plpgsql as $$
begin
  delete from files where app_id = old.app_id and org_id = old.id
    and team_id is null and user_id is null and agent_id is null and id is distinct from old.logo_file_id;
  return old;
end $$;
create trigger delete_files before delete on orgs for each row execute function delete_org_level_files();

-- The quota of stored bytes.
create function files_counted() returns trigger language plpgsql as $$
begin
  perform app_use(a.app_id, a.sandbox_id, 'file_bytes', a.bytes) from (
    select app_id, sandbox_id, sum(size)::bigint as bytes from added group by app_id, sandbox_id) a;
  return null;
end $$;
create trigger files_counted after insert on files referencing new table as added
  for each statement execute function files_counted();

-- When a whole sandbox is deleted, its counts go with it.
create function files_given_back() returns trigger language plpgsql as $$
begin
  perform app_use(g.app_id, g.sandbox_id, 'file_bytes', -g.bytes) from (
    select app_id, sandbox_id, sum(size)::bigint as bytes from gone group by app_id, sandbox_id) g
  where exists (select 1 from sandboxes s where s.app_id = g.app_id and s.id = g.sandbox_id);
  return null;
end $$;
create trigger files_given_back after delete on files referencing old table as gone
  for each statement execute function files_given_back();

-- Small pictures of files, made when they are first requested. A cache: a crash empties it, and backups leave it out.
create unlogged table pictures (
  app_id uuid not null,
  sandbox_id uuid not null,
  -- Of the file's contents.
  checksum bytea not null,
  width integer not null,
  format text not null,
  size integer not null,
  bytes bytea not null,
  used_at timestamptz not null default now(),
  primary key (app_id, sandbox_id, checksum, width, format),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);
-- The bytes are compressed already.
alter table pictures alter column bytes set storage external;
create index pictures_used on pictures (app_id, used_at) include (size);

-- A deleted file leaves no picture of it. One of other files with the same contents is made again.
create function drop_pictures() returns trigger language plpgsql as $$
begin
  delete from pictures p using gone g
    where p.app_id = g.app_id and p.sandbox_id = g.sandbox_id and p.checksum = g.checksum;
  return null;
end $$;
create trigger files_pictures_dropped after delete on files referencing old table as gone
  for each statement execute function drop_pictures();
