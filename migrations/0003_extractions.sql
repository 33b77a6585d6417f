-- Extraction jobs, what they produced, and the versioned config entries that some of it is written to.
create table extractions (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  kind text not null check (kind in ('document', 'link', 'site')),
  state text not null check (state in ('running', 'done', 'failed')),
  destination_kind text not null check (destination_kind in ('config', 'storage')),
  destination_path text,
  file_id uuid,
  url text,
  max_pages integer,
  options jsonb not null default '{}',
  failure_reason text,
  error jsonb,
  org_id uuid,
  team_id uuid,
  user_id uuid,
  agent_id uuid,
  version bigint not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id),
  foreign key (app_id, team_id) references teams (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade,
  foreign key (app_id, agent_id) references agents (app_id, id) on delete cascade
);
create index extractions_newest on extractions (app_id, sandbox_id, created_at desc, id desc);

create table extraction_outputs (
  app_id uuid not null,
  id uuid not null,
  extraction_id uuid not null,
  ordinal integer not null,
  state text not null check (state in ('done', 'failed')),
  source_url text,
  title text,
  metadata jsonb not null default '{}',
  error jsonb,
  file_id uuid,
  created_at timestamptz not null default now(),
  primary key (app_id, id),
  unique (app_id, extraction_id, ordinal),
  foreign key (app_id, extraction_id) references extractions (app_id, id) on delete cascade,
  foreign key (app_id, file_id) references files (app_id, id) on delete set null (file_id)
);
create index extraction_outputs_file on extraction_outputs (app_id, file_id) where file_id is not null;

create table configs (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  -- Whose path this is: the nil uuid stands for the app itself.
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

create trigger delete_extractions before delete on orgs
  for each row execute function delete_org_level_rows('extractions', 'agent');
create trigger delete_configs before delete on orgs for each row execute function delete_org_level_rows('configs', 'agent');
