-- Language models of apps, the order in which models stand in for each other, and a record of each call.

create table models (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  -- Also unique among the aliases of the space, which the service checks.
  name text not null,
  provider text not null check (provider in ('openai', 'anthropic', 'google')),
  -- As the provider names it.
  model text not null,
  url text not null,
  -- The key and the origin that it is for, wrapped by the root secret.
  key bytea,
  -- Whether it once had a key: then it is not used without one.
  needs_key boolean not null,
  context_tokens integer,
  output_tokens integer,
  timeout_seconds integer,
  modalities text[] not null,
  -- Millionths of a currency unit for a million tokens. Both or none.
  input_price bigint,
  output_price bigint,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  unique (app_id, sandbox_id, name),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  check ((input_price is null) = (output_price is null))
) with (fillfactor = 80);

create table model_aliases (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  name text not null,
  -- Names of models, in the order in which they are tried.
  models text[] not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  unique (app_id, sandbox_id, name),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
) with (fillfactor = 80);

create table model_calls (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  -- The name of the model, and the alias by which it was chosen.
  model text not null,
  alias text,
  -- The app's own model; null for one of the operator.
  model_id uuid,
  provider text not null,
  provider_model text not null,
  -- A process that was killed leaves a call running; the sweep marks it as abandoned.
  status text not null default 'running' check (status in ('running', 'succeeded', 'failed', 'abandoned')),
  error_code text,
  finish_reason text,
  -- What was reserved before the call, and what it used.
  reserved_tokens bigint not null,
  reserved_cost bigint,
  prompt_tokens bigint,
  completion_tokens bigint,
  estimated boolean not null default false,
  -- The prices at which the call was made.
  input_price bigint,
  output_price bigint,
  cost bigint,
  latency_ms integer,
  first_token_ms integer,
  -- For whom. No references: the record outlives them.
  user_id uuid,
  agent_id uuid,
  automation_id uuid,
  run_id uuid,
  node_id text,
  extraction_id uuid,
  -- Only if the operator keeps contents.
  prompt text,
  output text,
  created_at timestamptz not null,
  ended_at timestamptz,
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
) with (fillfactor = 80);
create index model_calls_newest on model_calls (app_id, sandbox_id, created_at desc, id desc);
create index model_calls_of_run on model_calls (app_id, run_id) where run_id is not null;
create index model_calls_oldest on model_calls (created_at);
create index model_calls_running on model_calls (created_at) where status = 'running';

-- The model or alias that reads the documents; null for the operator's default.
alter table extraction_schemas add column model text;
