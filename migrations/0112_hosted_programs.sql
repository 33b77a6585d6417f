-- Serverless hosting of workflows in code: a webhook wakes a function when a run has work.

-- The automations of whose runs the webhook wakes a function. Null for a webhook that receives events.
alter table webhooks add column automations uuid[];

alter table automation_program_work
  -- The webhook whose function has or had the claim, and the event that offered it; null for the claim of a worker.
  add column woken_by uuid,
  add column wake_event uuid,
  -- How often the function was woken for this run since it last wrote something, and when it may be woken again.
  add column wakes integer not null default 0,
  add column wake_after timestamptz;
create index automation_program_work_woken on automation_program_work (ready_at)
  where woken_by is not null and ready_at is not null;
create index automation_program_work_claims on automation_program_work (app_id, woken_by, lease_until)
  where woken_by is not null and lease_until is not null;
create index automation_program_work_wake on automation_program_work (app_id, wake_event) where wake_event is not null;

-- Adds the job that wakes functions: when a run is ready, and when a function has given its run back, so that it has room
-- for another one.
create function wake_program_hosts() returns trigger language plpgsql as $$
begin
  perform add_job('wake_programs', json_build_object('appId', w.app_id, 'webhookId', w.id), 'wake/' || w.id)
  from webhooks w
  where w.app_id = new.app_id and w.status = 'active' and new.automation_id = any(w.automations);
  return null;
end $$;
create trigger wake_program_hosts_first after insert on automation_program_work for each row
  when (new.ready_at is not null) execute function wake_program_hosts();
create trigger wake_program_hosts after update of ready_at, lease_until on automation_program_work for each row
  when (new.ready_at is not null and new.ready_at is distinct from new.lease_until and new.ready_at is distinct from old.ready_at
    or new.lease_until is null and old.lease_until is not null and new.woken_by is not null)
  execute function wake_program_hosts();

-- A function that writes something ends the series of failures of its webhook.
create function note_woken_program() returns trigger language plpgsql as $$
begin
  update webhooks set failing_since = null
  where app_id = new.app_id and id = new.woken_by and failing_since is not null;
  return null;
end $$;
create trigger note_woken_program after update of wakes on automation_program_work for each row
  when (old.wakes > 0 and new.wakes = 0 and new.woken_by is not null) execute function note_woken_program();
