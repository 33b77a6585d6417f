-- The run that a transaction works for, if any: its tree, and the depth of the events that it causes.
create function cause_tree_id() returns uuid language sql stable as $$
  select nullif(current_setting('quarry.cause_tree', true), '')::uuid
$$;
create function cause_depth() returns integer language sql stable as $$
  select coalesce(nullif(current_setting('quarry.cause_depth', true), '')::integer, 0)
$$;

-- Extraction jobs and their outputs.
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
  -- The progress of a link or site extraction, in pages.
  discovered integer,
  done integer,
  failed integer,
  -- Finished outputs, and the bytes of their text when they were written.
  output_count integer not null default 0,
  output_bytes bigint not null default 0,
  failure_reason text,
  error jsonb,
  org_id uuid,
  team_id uuid,
  user_id uuid,
  agent_id uuid,
  version bigint not null default 1,
  -- The run that started it.
  cause_tree_id uuid default cause_tree_id(),
  cause_depth integer not null default cause_depth(),
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
-- For /metrics: how many run, and since when.
create index extractions_running on extractions (created_at) where state = 'running';
create trigger delete_extractions before delete on orgs
  for each row execute function delete_org_level_rows('extractions', 'agent');

create table extraction_outputs (
  app_id uuid not null,
  id uuid not null,
  extraction_id uuid not null,
  ordinal integer not null,
  -- The file name of a page's output; unique within the extraction.
  name text,
  state text not null check (state in ('done', 'failed')),
  source_url text,
  title text,
  metadata jsonb not null default '{}',
  -- Whether the text was truncated; of a web page, its type and what it states about its subject.
  page jsonb,
  error jsonb,
  file_id uuid,
  created_at timestamptz not null default now(),
  primary key (app_id, id),
  unique (app_id, extraction_id, ordinal),
  foreign key (app_id, extraction_id) references extractions (app_id, id) on delete cascade,
  foreign key (app_id, file_id) references files (app_id, id) on delete set null (file_id)
);
create index extraction_outputs_file on extraction_outputs (app_id, file_id) where file_id is not null;
create unique index extraction_outputs_name on extraction_outputs (app_id, extraction_id, name) where name is not null;

-- The stems of the names that an extraction's outputs have taken.
create table extraction_names (
  app_id uuid not null,
  extraction_id uuid not null,
  stem text not null,
  -- The highest number given to this stem; 1 is the stem itself.
  number integer not null,
  primary key (app_id, extraction_id, stem),
  foreign key (app_id, extraction_id) references extractions (app_id, id) on delete cascade
);
