-- Learned models count against the quota of bytes.

alter table knowledge_models
  add column sandbox_id uuid,
  -- The words and codes of the current version.
  add column bytes bigint not null default 0,
  -- The bytes of a model that was over the quota, until one is stored or the source shrinks.
  add column refused_bytes bigint;

update knowledge_models m set
  sandbox_id = (select s.sandbox_id from knowledge_sources s where s.app_id = m.app_id and s.id = m.source_id),
  bytes = (
    select coalesce(sum(octet_length(t.term) + 4 + octet_length(t.vector)), 0) from knowledge_model_terms t
    where t.app_id = m.app_id and t.source_id = m.source_id and t.version = m.version
  ) + (
    select coalesce(sum(octet_length(c.content)), 0) from knowledge_model_codes c
    where c.app_id = m.app_id and c.source_id = m.source_id and c.version = m.version);
alter table knowledge_models alter column sandbox_id set not null;
-- Copied from the source, like that of a document: when the source is deleted, it is too late to read it there.
create trigger knowledge_models_placed before insert on knowledge_models
  for each row execute function place_document();
-- Without a check of the bound: these models were learned before they counted.
select app_book(m.app_id, m.sandbox_id, 'file_bytes', date 'epoch', m.bytes) from knowledge_models m where m.bytes > 0;

create function knowledge_models_counted() returns trigger language plpgsql as $$
begin
  if tg_op <> 'DELETE' then
    perform app_use(new.app_id, new.sandbox_id, 'file_bytes', new.bytes - case tg_op when 'UPDATE' then old.bytes else 0 end);
  -- When a whole sandbox is deleted, its counts go with it.
  elsif exists (select 1 from sandboxes s where s.app_id = old.app_id and s.id = old.sandbox_id) then
    perform app_use(old.app_id, old.sandbox_id, 'file_bytes', -old.bytes);
  end if;
  return null;
end $$;
create trigger knowledge_models_added after insert on knowledge_models for each row
  when (new.bytes <> 0) execute function knowledge_models_counted();
create trigger knowledge_models_changed after update of bytes on knowledge_models for each row
  when (new.bytes <> old.bytes) execute function knowledge_models_counted();
create trigger knowledge_models_given_back after delete on knowledge_models for each row
  when (old.bytes <> 0) execute function knowledge_models_counted();

-- Adds new codes to the size of a source's model and returns the number of this addition. When they are over the quota,
-- the model is deleted and 0 is returned: the version is then one without rows, and its dimensions are 0.
create function grow_knowledge_model(the_app uuid, the_source uuid, more bigint) returns bigint
language plpgsql as $$
declare
  added bigint;
begin
  update knowledge_models m set code_version = m.code_version + 1, bytes = m.bytes + more
  where m.app_id = the_app and m.source_id = the_source returning m.code_version into added;
  return coalesce(added, 0);
exception when sqlstate 'QA001' then
  delete from knowledge_model_terms t using knowledge_models m
  where m.app_id = the_app and m.source_id = the_source
    and t.app_id = m.app_id and t.source_id = m.source_id and t.version = m.version;
  delete from knowledge_model_codes c using knowledge_models m
  where m.app_id = the_app and m.source_id = the_source
    and c.app_id = m.app_id and c.source_id = m.source_id and c.version = m.version;
  update knowledge_models m set version = m.version + 1, dimensions = 0, bytes = 0, refused_bytes = m.bytes + more
  where m.app_id = the_app and m.source_id = the_source;
  return 0;
end $$;
