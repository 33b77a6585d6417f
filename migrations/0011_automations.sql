-- Automations, their graphs by version, runs, journals, events and app secrets. JSON that is stored and returned unread is
-- `json`, not `jsonb`, so that it stays exactly as it was, `\u0000` included.
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
  -- The version of the current graph. Null when the user's own program works the runs.
  graph_version integer,
  input_schema json,
  invoke_auth text not null default 'any' check (invoke_auth in ('any', 'secret_key', 'user')),
  run_as_user_id uuid,
  run_as_agent_id uuid,
  -- Set when the user or agent that it ran as was deleted.
  identity_gone text check (identity_gone in ('user', 'agent')),
  org_id uuid,
  team_id uuid,
  user_id uuid,
  -- Never set: it is here so that the rules of visibility are the same for every resource.
  agent_id uuid,
  max_concurrent_runs integer,
  timeout_seconds integer,
  metadata jsonb not null default '{}',
  next_tick_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id),
  foreign key (app_id, team_id) references teams (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade,
  foreign key (app_id, run_as_user_id) references users (app_id, id),
  foreign key (app_id, run_as_agent_id) references agents (app_id, id),
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
create trigger delete_automations before delete on orgs
  for each row execute function delete_org_level_rows('automations', '');

-- An automation outlives the user or agent that it runs as. It is paused then, because with neither set it would run with
-- the rights of the app.
create function pause_automations() returns trigger language plpgsql as $$
begin
  update automations set status = case status when 'running' then 'paused' else status end, identity_gone = tg_argv[0],
    run_as_user_id = null, run_as_agent_id = null, next_tick_at = null, updated_at = now()
  where app_id = old.app_id and (tg_argv[0] = 'user' and run_as_user_id = old.id
    or tg_argv[0] = 'agent' and run_as_agent_id = old.id);
  return old;
end $$;
create trigger pause_automations before delete on users for each row execute function pause_automations('user');
create trigger pause_automations before delete on agents for each row execute function pause_automations('agent');

-- A run keeps the graph that it began with.
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
  -- `$` in the graph, when that is not the payload itself.
  input json,
  participants json,
  result json,
  error json,
  event_id uuid,
  scheduled_at timestamptz,
  -- The number of runs above this one (`depth`), and of events that led to it (`event_depth`).
  depth integer not null default 0,
  event_depth integer not null default 0,
  -- The run that this run's tree began with; null for that run itself.
  tree_id uuid,
  parent_run_id uuid,
  parent_command_id text,
  retried_from uuid,
  invoked_by_user_id uuid,
  -- The agent whose run started this one, so that a retry acts as that agent again.
  invoked_by_agent_id uuid,
  -- The identity that the run acts with. Neither: the app.
  acts_as_user_id uuid,
  acts_as_agent_id uuid,
  org_id uuid,
  team_id uuid,
  user_id uuid,
  agent_id uuid,
  timeout_seconds integer,
  -- The highest sequence in the journal, and whether the run only waits.
  sequence integer not null default 0,
  waiting boolean not null default false,
  -- When to advance the run, if no signal or child does it first.
  wake_at timestamptz,
  -- {node_id, command_id, timer_id, attempt} while the run waits for nothing but a timer. Many timers then fire in one
  -- statement, without reading their runs.
  wake_timer json,
  -- Runs that a program outside works: when its claim expires.
  lease_until timestamptz,
  lease_seconds integer,
  -- Counts the changes that streams show.
  version bigint not null default 1,
  -- The states that streams have shown, oldest first, so that a reader that reconnects receives those it missed. Each has
  -- the version it began, its status, the time, and the end of the lease if there was one. The rest of a run changes only
  -- when it ends, or never. Version 1 is the run as it was created. A run worked by its graph has three at most.
  changes jsonb not null default '[]',
  started_at timestamptz,
  completed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, automation_id) references automations (app_id, id) on delete cascade
) with (fillfactor = 75);
create index automation_runs_of_automation on automation_runs (app_id, automation_id, created_at desc, id desc);
create index automation_runs_of_sandbox on automation_runs (app_id, sandbox_id, id);
create index automation_runs_unfinished on automation_runs (app_id, sandbox_id, id) where status in ('failed', 'cancelled');
create index automation_runs_pending on automation_runs (app_id, automation_id, created_at, id) where status = 'pending';
create index automation_runs_running on automation_runs (app_id, automation_id) where status = 'running';
create index automation_runs_wake on automation_runs (wake_at) where wake_at is not null;
create index automation_runs_lease on automation_runs (lease_until) where lease_until is not null;
create index automation_runs_children on automation_runs (app_id, parent_run_id) where parent_run_id is not null;
create index automation_runs_of_tree on automation_runs (app_id, tree_id) where tree_id is not null;
create unique index automation_runs_of_command on automation_runs (app_id, parent_command_id) where parent_command_id is not null;
create unique index automation_runs_of_tick on automation_runs (app_id, automation_id, scheduled_at)
  where scheduled_at is not null and retried_from is null;

-- Appends a state to automation_runs.changes, which keeps the newest 100.
create function note_change(changes jsonb, version bigint, status text, at timestamptz, lease_until timestamptz)
returns jsonb language sql stable as $$
  select case when jsonb_array_length(changes) >= 100 then changes - 0 else changes end
    || jsonb_build_object('version', version, 'status', status, 'at', at, 'lease_until', lease_until)
$$;

-- The runs of a tree: the first one, and those that it has led to by child runs and events.
create table automation_run_trees (
  app_id uuid not null,
  id uuid not null,
  runs integer not null,
  primary key (app_id, id),
  foreign key (app_id, id) references automation_runs (app_id, id) on delete cascade
);

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

-- The runs that wait for an extraction or an ingestion.
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

-- Claims of workers on the external work of nodes. Unlogged: losing it only repeats work.
create unlogged table automation_work_claims (
  app_id uuid not null,
  run_id uuid not null,
  command_id text not null,
  worker text not null,
  primary key (app_id, run_id, command_id),
  foreign key (app_id, run_id) references automation_runs (app_id, id) on delete cascade
);

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

-- Events on their way to the automations, webhooks and streams that take them. Written only when one does.
create table events (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  name text not null,
  payload json not null,
  depth integer not null default 0,
  tree_id uuid,
  org_id uuid,
  team_id uuid,
  user_id uuid,
  agent_id uuid,
  subject_kind text,
  subject_id uuid,
  -- For webhooks or streams (0014); `position` is its number in their log, `place` the order of writing.
  heard boolean not null default false,
  place bigint generated always as identity,
  position bigint,
  -- The only webhook that the event is for.
  webhook_id uuid,
  created_at timestamptz not null default now(),
  dispatched_at timestamptz,
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);
create index events_age on events (created_at);
create index events_unlogged on events (app_id, sandbox_id, place) where heard and position is null;
create unique index events_position on events (app_id, sandbox_id, position) where position is not null;

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

-- Events about files, extractions, ingestions and sources. Triggers write them in the transaction of the change, whatever
-- code makes it, and only when an automation, a webhook or a stream
-- takes them, or a run waits. Payloads carry ids in the form that clients see.

-- `fil_…`: the uuid in 22 base62 digits behind its prefix, as src/ids.ts writes it.
create function format_id(prefix text, id uuid) returns text language plpgsql immutable strict as $$
declare
  alphabet constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  hex constant text := replace(id::text, '-', '');
  rest numeric := 0;
  digits text := '';
begin
  for part in 0..3 loop
    rest := rest * 4294967296 + ('x' || lpad(substr(hex, part * 8 + 1, 8), 16, '0'))::bit(64)::bigint;
  end loop;
  for digit in 1..22 loop
    digits := substr(alphabet, (rest % 62)::integer + 1, 1) || digits;
    rest := div(rest, 62);
  end loop;
  return prefix || '_' || digits;
end $$;

-- A UUIDv7 (RFC 9562): 48 bits of milliseconds over random bits.
create function new_uuid() returns uuid language sql volatile as $$
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
    52, 1), 53, 1), 'hex')::uuid
$$;

create function emit_event(
  app uuid, sandbox uuid, event_name text, event_payload json,
  org uuid, team uuid, owner_user uuid, agent uuid, about_kind text, about_id uuid, tree uuid, event_depth integer
) returns void language plpgsql as $$
declare
  event_id constant uuid := new_uuid();
begin
  if not exists (select 1 from automations a
      where a.app_id = app and a.sandbox_id = sandbox and a.trigger = event_name
        and a.type = 'trigger' and a.status = 'running')
    and not event_is_heard(app, sandbox, event_name)
    and (about_id is null or not exists (select 1 from automation_run_children c
      where c.app_id = app and c.child_kind = about_kind and c.child_id = about_id)) then
    return;
  end if;
  -- While an app or a sandbox is deleted, no listener is left.
  if not exists (select 1 from sandboxes s where s.app_id = app and s.id = sandbox) then
    return;
  end if;
  insert into events (app_id, id, sandbox_id, name, payload, org_id, team_id, user_id, agent_id, subject_kind, subject_id,
    tree_id, depth)
  values (app, event_id, sandbox, event_name, event_payload, org, team, owner_user, agent, about_kind, about_id,
    tree, event_depth);
  perform graphile_worker.add_job('dispatch_event', json_build_object('appId', app, 'eventId', event_id));
end $$;

create function emit_file_event() returns trigger language plpgsql as $$
begin
  perform emit_event(new.app_id, new.sandbox_id, case tg_op when 'INSERT' then 'file.created' else 'file.updated' end,
    json_strip_nulls(json_build_object('file', format_id('fil', new.id), 'filename', new.filename,
      'content_type', new.content_type, 'size', new.size, 'org', format_id('org', new.org_id),
      'team', format_id('team', new.team_id), 'user', format_id('usr', new.user_id),
      'agent', format_id('agt', new.agent_id))),
    new.org_id, new.team_id, new.user_id, new.agent_id, 'file', new.id, cause_tree_id(), cause_depth());
  return null;
end $$;
create trigger files_created after insert on files for each row execute function emit_file_event();
create trigger files_updated after update on files for each row
  when (old.filename is distinct from new.filename or old.shared is distinct from new.shared
    or old.provider_metadata is distinct from new.provider_metadata)
  execute function emit_file_event();

create function emit_extraction_event() returns trigger language plpgsql as $$
begin
  perform emit_event(new.app_id, new.sandbox_id,
    case new.state when 'done' then 'extraction.completed' else 'extraction.failed' end,
    json_strip_nulls(json_build_object('extraction', format_id('ext', new.id), 'kind', new.kind, 'state', new.state,
      'file', format_id('fil', new.file_id), 'url', new.url, 'failure_reason', new.failure_reason)),
    new.org_id, new.team_id, new.user_id, new.agent_id, 'extraction', new.id,
    new.cause_tree_id, new.cause_depth);
  return null;
end $$;
create trigger extractions_created after insert on extractions for each row
  when (new.state in ('done', 'failed')) execute function emit_extraction_event();
create trigger extractions_ended after update of state on extractions for each row
  when (old.state = 'running' and new.state in ('done', 'failed')) execute function emit_extraction_event();

create function emit_ingestion_event() returns trigger language plpgsql as $$
declare
  source knowledge_sources;
begin
  select * into source from knowledge_sources s where s.app_id = new.app_id and s.id = new.source_id;
  if not found then
    return null;
  end if;
  perform emit_event(new.app_id, source.sandbox_id, 'ingestion.' || new.status,
    json_strip_nulls(json_build_object('ingestion', format_id('cig', new.id), 'source', format_id('cso', new.source_id),
      'status', new.status, 'error', new.error)),
    source.org_id, source.team_id, source.user_id, source.agent_id, 'ingestion', new.id,
    new.cause_tree_id, new.cause_depth);
  return null;
end $$;
create trigger ingestions_ended after update of status on knowledge_ingestions for each row
  when (old.status is distinct from new.status and new.status in ('succeeded', 'failed'))
  execute function emit_ingestion_event();

create function emit_source_event() returns trigger language plpgsql as $$
declare
  source constant knowledge_sources := coalesce(new, old);
begin
  perform emit_event(source.app_id, source.sandbox_id,
    'knowledge_source.' || case tg_op when 'INSERT' then 'created' when 'UPDATE' then 'updated' else 'deleted' end,
    json_build_object('source', format_id('cso', source.id), 'type', source.type, 'state', source.state),
    source.org_id, source.team_id, source.user_id, source.agent_id, 'source', source.id, cause_tree_id(), cause_depth());
  return null;
end $$;
create trigger sources_created_or_deleted after insert or delete on knowledge_sources for each row
  execute function emit_source_event();
create trigger sources_updated after update on knowledge_sources for each row
  when (old.payload is distinct from new.payload or old.metadata is distinct from new.metadata
    or old.state is distinct from new.state)
  execute function emit_source_event();
