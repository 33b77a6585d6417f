-- Processes of an older release read an item without content and file as an empty text. They leave it to newer ones.
create or replace function admit_ingestion_holder() returns trigger language plpgsql as $$
begin
  if new.kind = 'restore' or new.kind = 'pull' and exists (
    select from knowledge_sources s where s.app_id = new.app_id and s.id = new.source_id
      and s.type in ('git/repository', 's3/bucket', 'web/feed'))
    or new.kind = 'replace' and exists (
      select from knowledge_ingestion_items i where i.app_id = new.app_id and i.ingestion_id = new.id
        and i.state = 'pending' and i.content is null and i.file_id is null)
  then return null;
  end if;
  return new;
end $$;
