-- {limit, per, key?}: how many runs of an automation may start in a time, or how many with the same value at a path of
-- their payload. Null for no limit.
alter table automations add column rate jsonb;

-- What such a limit counts a run with, of runs that were created while it was set: the digest of the value, or the same
-- for all runs.
alter table automation_runs add column rate_key bytea;
create index automation_runs_started_of_rate on automation_runs (app_id, automation_id, rate_key, started_at)
  where rate_key is not null and started_at is not null;
create index automation_runs_pending_of_rate on automation_runs (app_id, automation_id, rate_key, created_at, id)
  where status = 'pending' and rate_key is not null;
