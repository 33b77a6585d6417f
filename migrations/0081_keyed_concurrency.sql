-- {key, limit}: how many runs with the same value at a path of their payload may be active. Null for no limit.
alter table automations add column concurrency jsonb;

-- The digest of that value, of runs that were created while such a limit was set.
alter table automation_runs add column concurrency_key bytea;
create index automation_runs_pending_of_key on automation_runs (app_id, automation_id, concurrency_key, created_at, id)
  where status = 'pending' and concurrency_key is not null;
create index automation_runs_running_of_key on automation_runs (app_id, automation_id, concurrency_key)
  where status = 'running' and concurrency_key is not null;
