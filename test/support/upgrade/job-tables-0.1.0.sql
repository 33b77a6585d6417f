-- The tables, types and functions through which release 0.1.0 stored its jobs, as far as its processes used them.
create schema graphile_worker;
create table graphile_worker._private_tasks (
  id integer primary key generated always as identity,
  identifier text not null unique
);
create table graphile_worker._private_job_queues (
  id integer primary key generated always as identity,
  queue_name text not null unique,
  locked_at timestamptz,
  locked_by text,
  is_available boolean not null generated always as (locked_at is null) stored
);
create table graphile_worker._private_jobs (
  id bigint primary key generated always as identity,
  job_queue_id integer,
  task_id integer not null,
  payload json not null default '{}',
  priority smallint not null default 0,
  run_at timestamptz not null default now(),
  attempts smallint not null default 0,
  max_attempts smallint not null default 25 check (max_attempts >= 1),
  last_error text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  key text unique,
  locked_at timestamptz,
  locked_by text,
  revision integer not null default 0,
  flags jsonb,
  is_available boolean not null generated always as (locked_at is null and attempts < max_attempts) stored
);
create view graphile_worker.jobs as
  select jobs.id, tasks.identifier as task_identifier, jobs.run_at, jobs.attempts, jobs.max_attempts, jobs.key,
    jobs.locked_at, jobs.locked_by, jobs.flags
  from graphile_worker._private_jobs jobs join graphile_worker._private_tasks tasks on tasks.id = jobs.task_id;
create type graphile_worker.job_spec as (
  identifier text, payload json, queue_name text, run_at timestamptz, max_attempts integer, job_key text,
  priority integer, flags text[]
);

create function graphile_worker.add_jobs(
  specs graphile_worker.job_spec[], job_key_preserve_run_at boolean default false
) returns setof graphile_worker._private_jobs language plpgsql as $$
begin
  insert into graphile_worker._private_tasks (identifier) select distinct identifier from unnest(specs)
  on conflict do nothing;
  return query insert into graphile_worker._private_jobs as jobs (task_id, payload, run_at, max_attempts, key, priority)
  select tasks.id, spec.payload, coalesce(spec.run_at, now()), coalesce(spec.max_attempts, 25), spec.job_key,
    coalesce(spec.priority, 0)
  from unnest(specs) spec join graphile_worker._private_tasks tasks on tasks.identifier = spec.identifier
  on conflict (key) do update set payload = excluded.payload, attempts = 0,
    run_at = case when job_key_preserve_run_at then jobs.run_at else excluded.run_at end
  where jobs.locked_at is null
  returning *;
end $$;
create function graphile_worker.add_job(
  identifier text, payload json default null, queue_name text default null, run_at timestamptz default null,
  max_attempts integer default null, job_key text default null, priority integer default null,
  flags text[] default null, job_key_mode text default 'replace'
) returns graphile_worker._private_jobs language plpgsql as $$
declare
  added graphile_worker._private_jobs;
begin
  select * into added from graphile_worker.add_jobs(
    array[(identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags)::graphile_worker.job_spec],
    job_key_mode = 'preserve_run_at');
  return added;
end $$;
create function graphile_worker.tg_jobs__after_insert() returns trigger language plpgsql as $$
begin
  perform pg_notify('jobs:insert', '{"r":1,"count":1}');
  return new;
end $$;
create trigger _900_after_insert after insert on graphile_worker._private_jobs
  for each statement execute function graphile_worker.tg_jobs__after_insert();
