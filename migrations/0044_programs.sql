-- Workflows in code: the user's program executes a run step by step over the same journal.

-- Whether the current workflow of an automation, and the workflow of a run, is a program.
alter table automations add column program boolean not null default false;
alter table automation_runs
  add column program boolean not null default false,
  -- {expected, found} while the run waits for a program that fits its journal.
  add column workflow_changed json,
  -- The claim of an external worker on a run without a workflow.
  add column claim uuid;

-- The work on runs of programs. Every writer locks the run first.
create table automation_program_work (
  app_id uuid not null,
  run_id uuid not null,
  automation_id uuid not null,
  -- When a worker may claim the run; null while the run only waits, and when it has ended.
  ready_at timestamptz,
  claim uuid,
  lease_seconds integer,
  lease_until timestamptz,
  code_version text,
  -- Versions of the code that did not fit the journal, newest last.
  refused_versions text[] not null default '{}',
  -- The last entry that the holder of the claim has received.
  seen integer not null default 0,
  -- The last batch of entries, so that its repetition is recognised: the entry that it followed, and its digest.
  batch_after integer,
  batch_digest bytea,
  primary key (app_id, run_id),
  foreign key (app_id, run_id) references automation_runs (app_id, id) on delete cascade
);
create index automation_program_work_ready on automation_program_work (app_id, automation_id, ready_at)
  where ready_at is not null;

-- The values of secrets that redaction removed from an entry, encrypted.
create table automation_entry_fragments (
  app_id uuid not null,
  run_id uuid not null,
  sequence integer not null,
  secrets bytea not null,
  primary key (app_id, run_id, sequence),
  foreign key (app_id, run_id) references automation_runs (app_id, id) on delete cascade
);

create function offer_program_run() returns trigger language plpgsql as $$
begin
  insert into automation_program_work (app_id, run_id, automation_id, ready_at)
  values (new.app_id, new.id, new.automation_id, new.created_at);
  perform pg_notify('quarry_changes', 'program/' || new.app_id || '/' || new.automation_id);
  return null;
end $$;
create trigger offer_program_run after insert on automation_runs for each row
  when (new.program and new.status = 'pending') execute function offer_program_run();

create function end_program_work() returns trigger language plpgsql as $$
begin
  update automation_program_work set ready_at = null where app_id = new.app_id and run_id = new.id;
  return null;
end $$;
create trigger end_program_work after update of status on automation_runs for each row
  when (new.program and new.status in ('completed', 'failed', 'cancelled')) execute function end_program_work();
