-- Streams show an ingestion at each change, numbered by its version. Extending a lease is no change.
alter table knowledge_ingestions add column version integer not null default 0;

create function note_ingestion_change() returns trigger language plpgsql as $$
begin
  new.version := old.version + 1;
  perform pg_notify('quarry_changes', 'ingestion/' || new.app_id || '/' || new.id);
  return new;
end $$;
create trigger ingestions_changed before update on knowledge_ingestions for each row
  when (old.status is distinct from new.status or old.queued is distinct from new.queued
    or old.metadata is distinct from new.metadata or old.stats is distinct from new.stats)
  execute function note_ingestion_change();

-- The streams of an ingestion that has ended have ended too.
create function note_ingestion_removal() returns trigger language plpgsql as $$
begin
  perform pg_notify('quarry_changes', 'ingestion/' || old.app_id || '/' || old.id);
  return null;
end $$;
create trigger ingestions_removed after delete on knowledge_ingestions for each row
  when (old.status not in ('succeeded', 'failed')) execute function note_ingestion_removal();
