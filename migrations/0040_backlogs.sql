-- How many runs of an automation may wait for their turn before invocations are refused; null for no limit.
alter table automations add column max_pending_runs integer;
