-- When runs are due, in a table of their own: with an index on automation_runs.wake_at, waking a run would write a new
-- entry into each of its indexes. Half of each new page stays free for the updates of its rows.
create table automation_run_wakes (
  app_id uuid not null,
  run_id uuid not null,
  wake_at timestamptz not null,
  primary key (app_id, run_id),
  foreign key (app_id, run_id) references automation_runs (app_id, id) on delete cascade
);
insert into automation_run_wakes (app_id, run_id, wake_at)
select app_id, id, wake_at from automation_runs where wake_at is not null;
create index automation_run_wakes_due on automation_run_wakes (wake_at);
drop index automation_runs_wake;
alter table automation_runs set (fillfactor = 50);

-- Not when wake_at becomes null: waking deletes the rows of thousands of runs in one statement.
create function schedule_wake() returns trigger language plpgsql as $$
begin
  insert into automation_run_wakes (app_id, run_id, wake_at) values (new.app_id, new.id, new.wake_at)
  on conflict (app_id, run_id) do update set wake_at = excluded.wake_at;
  return null;
end $$;
create trigger schedule_wake after update of wake_at on automation_runs for each row
  when (new.wake_at is not null and new.wake_at is distinct from old.wake_at) execute function schedule_wake();

-- Entries are only written together with their run's row, which the writer has locked. Checking the reference of each
-- entry again takes longer than writing it.
alter table automation_run_entries drop constraint automation_run_entries_app_id_run_id_fkey;
create function delete_run_entries() returns trigger language plpgsql as $$
begin
  delete from automation_run_entries e using gone where e.app_id = gone.app_id and e.run_id = gone.id;
  return null;
end $$;
create trigger delete_run_entries after delete on automation_runs referencing old table as gone
  for each statement execute function delete_run_entries();
