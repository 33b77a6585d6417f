-- Stored files. The contents are a blob of their own, named by blob_key and complete before the row exists. A blob
-- belongs to one row.
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
create unique index files_blob on files (blob_key);
create index files_newest on files (app_id, sandbox_id, created_at desc, id desc);
create index files_org on files (app_id, org_id) where org_id is not null;
create index files_team on files (app_id, team_id) where team_id is not null;
create index files_user on files (app_id, user_id) where user_id is not null;
create index files_agent on files (app_id, agent_id) where agent_id is not null;

-- Who else may read or write a file. principal is an id, a role, or the nil uuid for everyone.
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

-- Blobs to delete from due_at on, unless a file refers to them: those whose row is gone, whatever removed it, and those
-- that are being written, so that a process that dies between blob and row leaves nothing behind for ever.
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

-- A picture lives as long as it is shown: it goes when another takes its place and when its agent or org goes, and
-- whoever showed it shows nothing once it is gone.
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
