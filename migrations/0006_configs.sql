-- Versioned config entries under virtual paths.
create table configs (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  -- The owner of the path. The nil uuid means the app itself.
  owner_id uuid not null,
  virtual_path text not null,
  org_id uuid,
  team_id uuid,
  user_id uuid,
  agent_id uuid,
  version integer not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  unique (app_id, sandbox_id, owner_id, virtual_path),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id),
  foreign key (app_id, team_id) references teams (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade,
  foreign key (app_id, agent_id) references agents (app_id, id) on delete cascade
);
create trigger delete_configs before delete on orgs for each row execute function delete_org_level_rows('configs', 'agent');

create table config_versions (
  app_id uuid not null,
  id uuid not null,
  config_id uuid not null,
  version integer not null,
  content_type text not null,
  content_hash bytea not null,
  file_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (app_id, id),
  unique (app_id, config_id, version),
  foreign key (app_id, config_id) references configs (app_id, id) on delete cascade,
  foreign key (app_id, file_id) references files (app_id, id) on delete cascade
);
create index config_versions_file on config_versions (app_id, file_id);
