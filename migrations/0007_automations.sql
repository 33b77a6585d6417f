-- Automations, their graphs by version, runs, journals, events and app secrets. JSON that is only kept and given back
-- is `json`, not `jsonb`: exactly as it was, `\u0000` included.
create table automations (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  name text not null,
  lookup_key text,
  description text,
  type text not null check (type in ('trigger', 'scheduled', 'invoked')),
  status text not null default 'draft' check (status in ('draft', 'running', 'paused')),
  trigger text,
  filter text,
  schedule text,
  timezone text not null default 'UTC',
  -- The current graph's version; null when the runs are worked by the user's own program.
  graph_version integer,
  input_schema json,
  invoke_auth text not null default 'any' check (invoke_auth in ('any', 'secret_key', 'user')),
  run_as_user_id uuid,
  run_as_agent_id uuid,
  org_id uuid,
  team_id uuid,
  user_id uuid,
  -- Never set; there so that the rules of visibility are the same for every resource.
  agent_id uuid,
  max_concurrent_runs integer,
  timeout_seconds integer,
  metadata jsonb not null default '{}',
  next_tick_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete cascade,
  foreign key (app_id, team_id) references teams (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade,
  foreign key (app_id, run_as_user_id) references users (app_id, id) on delete cascade,
  foreign key (app_id, run_as_agent_id) references agents (app_id, id) on delete cascade,
  check (num_nonnulls(team_id, user_id) <= 1),
  check (num_nonnulls(run_as_user_id, run_as_agent_id) <= 1)
);
create unique index automations_lookup_key on automations (app_id, sandbox_id, lookup_key) where lookup_key is not null;
create index automations_newest on automations (app_id, sandbox_id, created_at desc, id desc);
create index automations_triggered on automations (app_id, sandbox_id, trigger) where type = 'trigger' and status = 'running';
create index automations_due on automations (next_tick_at) where next_tick_at is not null;
create index automations_org on automations (app_id, org_id) where org_id is not null;
create index automations_team on automations (app_id, team_id) where team_id is not null;
create index automations_user on automations (app_id, user_id) where user_id is not null;
create index automations_run_as_user on automations (app_id, run_as_user_id) where run_as_user_id is not null;
create index automations_run_as_agent on automations (app_id, run_as_agent_id) where run_as_agent_id is not null;

-- A run keeps to the graph that it began with.
create table automation_graphs (
  app_id uuid not null,
  automation_id uuid not null,
  version integer not null,
  graph json not null,
  created_at timestamptz not null default now(),
  primary key (app_id, automation_id, version),
  foreign key (app_id, automation_id) references automations (app_id, id) on delete cascade
);

create table automation_runs (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  automation_id uuid not null,
  graph_version integer,
  type text not null,
  status text not null default 'pending' check (status in ('pending', 'running', 'completed', 'failed', 'cancelled')),
  payload json not null,
  -- What the graph sees as `$` when that is not the payload itself.
  input json,
  participants json,
  result json,
  error json,
  event_id uuid,
  scheduled_at timestamptz,
  -- How many runs are above this one (`depth`), and how many events led to it (`event_depth`).
  depth integer not null default 0,
  event_depth integer not null default 0,
  parent_run_id uuid,
  parent_command_id text,
  retried_from uuid,
  invoked_by_user_id uuid,
  -- Whom the run acts as; neither: the app.
  acts_as_user_id uuid,
  acts_as_agent_id uuid,
  org_id uuid,
  team_id uuid,
  user_id uuid,
  agent_id uuid,
  timeout_seconds integer,
  -- The journal: its highest sequence, and whether the run does nothing but wait.
  sequence integer not null default 0,
  waiting boolean not null default false,
  -- When the run has to be looked at again, if no signal or child comes first.
  wake_at timestamptz,
  -- Runs worked from outside: until when the claim holds.
  lease_until timestamptz,
  lease_seconds integer,
  -- Counts the changes that streams show.
  version bigint not null default 1,
  started_at timestamptz,
  completed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, automation_id) references automations (app_id, id) on delete cascade
) with (fillfactor = 75);
create index automation_runs_of_automation on automation_runs (app_id, automation_id, created_at desc, id desc);
create index automation_runs_pending on automation_runs (app_id, automation_id, created_at, id) where status = 'pending';
create index automation_runs_running on automation_runs (app_id, automation_id) where status = 'running';
create index automation_runs_wake on automation_runs (wake_at) where wake_at is not null;
create index automation_runs_lease on automation_runs (lease_until) where lease_until is not null;
create index automation_runs_children on automation_runs (app_id, parent_run_id) where parent_run_id is not null;
create unique index automation_runs_of_command on automation_runs (app_id, parent_command_id) where parent_command_id is not null;
create unique index automation_runs_of_tick on automation_runs (app_id, automation_id, scheduled_at)
  where scheduled_at is not null and retried_from is null;

create table automation_run_entries (
  app_id uuid not null,
  run_id uuid not null,
  sequence integer not null,
  id uuid not null,
  type text not null,
  node_id text,
  command_id text,
  timer_id text,
  record json not null,
  created_at timestamptz not null default now(),
  primary key (app_id, run_id, sequence),
  foreign key (app_id, run_id) references automation_runs (app_id, id) on delete cascade
);

-- Who waits for an extraction or an ingestion.
create table automation_run_children (
  app_id uuid not null,
  child_kind text not null check (child_kind in ('extraction', 'ingestion')),
  child_id uuid not null,
  run_id uuid not null,
  command_id text not null,
  primary key (app_id, child_kind, child_id, run_id, command_id),
  foreign key (app_id, run_id) references automation_runs (app_id, id) on delete cascade
);
create index automation_run_children_of_run on automation_run_children (app_id, run_id);

create table automation_invocations (
  app_id uuid not null,
  automation_id uuid not null,
  caller text not null,
  idempotency_key text not null,
  request_digest bytea not null,
  run_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (app_id, automation_id, caller, idempotency_key),
  foreign key (app_id, automation_id) references automations (app_id, id) on delete cascade
);
create index automation_invocations_age on automation_invocations (created_at);

-- Events on their way to the automations that they set off. Written only when something listens.
create table events (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  name text not null,
  payload json not null,
  depth integer not null default 0,
  org_id uuid,
  team_id uuid,
  user_id uuid,
  agent_id uuid,
  subject_kind text,
  subject_id uuid,
  created_at timestamptz not null default now(),
  dispatched_at timestamptz,
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);
create index events_age on events (created_at);

-- Values for `$secrets`, wrapped by the root secret.
create table app_secrets (
  app_id uuid not null,
  sandbox_id uuid not null,
  name text not null,
  value bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, sandbox_id, name),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);
