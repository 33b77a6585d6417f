-- When the sandbox was deleted. From then on it does not exist for any caller; a job deletes its rows in batches, and the
-- row of the sandbox at the end.
alter table sandboxes add column removed_at timestamptz;
create index sandboxes_removed on sandboxes (app_id, id) where removed_at is not null;

create or replace trigger sandboxes_given_back after delete on sandboxes for each row
  when (old.id <> '00000000-0000-0000-0000-000000000000' and old.removed_at is null) execute function sandboxes_counted();
create trigger sandboxes_removed after update of removed_at on sandboxes for each row
  when (old.removed_at is null and new.removed_at is not null) execute function sandboxes_counted();
create or replace trigger sandboxes_changed after insert or delete or update of removed_at on sandboxes
  for each statement execute function announce_tenancy_change();
