-- The lease holder that knows what this ingestion is. During an upgrade, a process of an older release does not set it:
-- it must not take what it does not know, because it would end it without effect. Its job then tries again later.
alter table knowledge_ingestions add column known_to uuid;

create function admit_ingestion_holder() returns trigger language plpgsql as $$
begin
  if new.kind = 'restore' or new.kind = 'pull' and exists (
    select from knowledge_sources s where s.app_id = new.app_id and s.id = new.source_id
      and s.type in ('git/repository', 's3/bucket', 'web/feed'))
  then return null;
  end if;
  return new;
end $$;
create trigger ingestions_admit before update on knowledge_ingestions for each row
  when (new.lease_holder is distinct from old.lease_holder and new.lease_holder is not null
    and new.known_to is distinct from new.lease_holder)
  execute function admit_ingestion_holder();
