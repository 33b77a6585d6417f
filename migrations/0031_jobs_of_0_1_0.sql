-- Release 0.1.0 kept its jobs in the schema graphile_worker, which a new database does not have. Its jobs move, and until
-- its last process has ended, its table is a view of the new one: its processes take and end jobs like those of this
-- release. The next release drops the schema.
do $upgrade$
begin
  if to_regclass('graphile_worker._private_jobs') is null then
    return;
  end if;
  -- Waits for the transactions that have added jobs.
  lock table graphile_worker._private_jobs in access exclusive mode;

  -- A key may have been used again since the last migration. A job that waited is replaced, one in progress loses its key.
  insert into jobs (id, task, payload, key, priority, run_at, attempts, max_attempts, last_error, crashes, locked_by,
    locked_at, waits, created_at, updated_at)
  select old.id, tasks.identifier, old.payload, case when again.id is null then old.key end, old.priority, old.run_at,
    old.attempts, old.max_attempts, old.last_error,
    case jsonb_typeof(old.flags -> 'crashes') when 'number' then (old.flags ->> 'crashes')::smallint else 0 end,
    old.locked_by, old.locked_at, coalesce(old.flags ? 'waits', false), old.created_at, old.updated_at
  from graphile_worker._private_jobs old
    join graphile_worker._private_tasks tasks on tasks.id = old.task_id
    left join jobs again on again.app_id = app_of_job(old.payload) and again.key = old.key
  where again.id is null or old.locked_by is not null;

  drop view graphile_worker.jobs;
  alter table graphile_worker._private_jobs rename to _moved_jobs;
  truncate graphile_worker._moved_jobs;
  create view graphile_worker._private_jobs as
    select jobs.id, null::integer as job_queue_id,
      (select tasks.id from graphile_worker._private_tasks tasks where tasks.identifier = jobs.task) as task_id,
      jobs.payload, jobs.priority, jobs.run_at, jobs.attempts, jobs.max_attempts, jobs.last_error, jobs.created_at,
      jobs.updated_at, jobs.key, jobs.locked_at, jobs.locked_by, 0 as revision,
      jsonb_strip_nulls(jsonb_build_object('waits', nullif(jobs.waits, false), 'crashes', nullif(jobs.crashes, 0))) as flags,
      jobs.locked_at is null and jobs.attempts < jobs.max_attempts as is_available
    from jobs;
  -- A process of 0.1.0 gives a job that waits a new id.
  alter view graphile_worker._private_jobs alter column id set default nextval('jobs_id_seq');
  create view graphile_worker.jobs as
    select id, null::text as queue_name, (select tasks.identifier from graphile_worker._private_tasks tasks
        where tasks.id = task_id) as task_identifier, priority, run_at, attempts, max_attempts, last_error, created_at,
      updated_at, key, locked_at, locked_by, revision, flags
    from graphile_worker._private_jobs;

  create function graphile_worker.change_job() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' then
      delete from jobs
      where app_id = app_of_job(old.payload) and id = old.id and locked_by is not distinct from old.locked_by;
      if found then
        return old;
      end if;
      return null;
    end if;
    -- Only if no other process has taken or released it since this one has read it.
    update jobs set id = new.id, key = new.key, run_at = new.run_at, attempts = new.attempts, priority = new.priority,
      max_attempts = new.max_attempts, last_error = new.last_error, locked_by = new.locked_by, locked_at = new.locked_at,
      waits = coalesce(new.flags ? 'waits', false), updated_at = new.updated_at,
      crashes = case jsonb_typeof(new.flags -> 'crashes') when 'number' then (new.flags ->> 'crashes')::smallint else 0 end
    where app_id = app_of_job(old.payload) and id = old.id and locked_by is not distinct from old.locked_by;
    if found then
      return new;
    end if;
    return null;
  end $$;
  create trigger change_job instead of update or delete on graphile_worker._private_jobs
    for each row execute function graphile_worker.change_job();
end $upgrade$;
