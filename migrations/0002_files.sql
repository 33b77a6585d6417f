-- Stored files. The contents are a blob of their own, named by blob_key and complete before the row exists.
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

-- Blobs whose row is gone, whatever removed it; a sweep deletes the bytes.
create table removed_blobs (
  blob_key text primary key,
  removed_at timestamptz not null default now()
);

create function remember_removed_blob() returns trigger language plpgsql as $$
begin
  insert into removed_blobs (blob_key) values (old.blob_key) on conflict do nothing;
  return null;
end $$;
create trigger files_removed after delete on files for each row execute function remember_removed_blob();
create trigger delete_files before delete on orgs for each row execute function delete_org_level_rows('files', 'agent');

-- A picture that is deleted as a file is a picture no more.
alter table orgs add foreign key (app_id, logo_file_id) references files (app_id, id) on delete set null (logo_file_id);
alter table agents
  add foreign key (app_id, profile_picture_file_id) references files (app_id, id)
  on delete set null (profile_picture_file_id);
