-- What documents were before they were changed or deleted, for as long as their source keeps it.

-- Null: none are kept. versions_from is when the source began to keep them; older ones are not shown. It stays set after
-- a source stopped, until its versions are deleted.
alter table knowledge_sources
  add column version_retention_days integer check (version_retention_days between 1 and 3650),
  add column versions_from timestamptz;
create index knowledge_sources_versions on knowledge_sources (app_id, id) where versions_from is not null;

-- The number of the current version, and when it began; null for the time at which the document was created.
alter table knowledge_documents
  add column version integer not null default 1,
  add column version_at timestamptz;

-- Texts of old versions, each once in a source.
create table knowledge_version_texts (
  app_id uuid not null,
  source_id uuid not null,
  content_hash bytea not null,
  content bytea not null,
  fragments jsonb,
  primary key (app_id, source_id, content_hash),
  foreign key (app_id, source_id) references knowledge_sources (app_id, id) on delete cascade
);

create table knowledge_versions (
  app_id uuid not null,
  document_id uuid not null,
  number integer not null,
  source_id uuid not null,
  title text,
  file_id uuid,
  metadata jsonb not null,
  content_type text,
  bytes_hash bytea not null,
  content_hash bytea not null,
  total_lines integer not null,
  total_size integer not null,
  source_url text,
  external_id text,
  external_order bigint,
  external_version text,
  -- The readers of a document that was deleted. While it exists, they are in its row.
  acl_id uuid,
  created_at timestamptz not null,
  started_at timestamptz not null,
  ended_at timestamptz not null,
  is_deletion boolean not null,
  primary key (app_id, document_id, number),
  foreign key (app_id, source_id) references knowledge_sources (app_id, id) on delete cascade,
  foreign key (app_id, source_id, content_hash)
    references knowledge_version_texts (app_id, source_id, content_hash),
  foreign key (app_id, acl_id) references knowledge_acls (app_id, id)
);
create index knowledge_versions_source on knowledge_versions (app_id, source_id, ended_at);
create index knowledge_versions_text on knowledge_versions (app_id, source_id, content_hash);
create index knowledge_versions_acl on knowledge_versions (app_id, acl_id) where acl_id is not null;

-- Keeps a document as it was, in the transaction that changes or deletes it, with all that can do so. Its text is still
-- the old one: it is written after the document. The bounds of a document never stop a change; its oldest versions go.
create function keep_version() returns trigger language plpgsql as $$
declare
  started timestamptz := date_trunc('milliseconds', coalesce(old.version_at, old.created_at));
  moment timestamptz := greatest(date_trunc('milliseconds', clock_timestamp()), started);
begin
  if tg_op = 'UPDATE' then
    new.version := old.version + 1;
    new.version_at := moment;
  end if;
  if exists (select from knowledge_sources s where s.app_id = old.app_id and s.id = old.source_id
      and s.version_retention_days is not null) then
    insert into knowledge_version_texts (app_id, source_id, content_hash, content, fragments)
    select old.app_id, old.source_id, old.content_hash, t.content, t.fragments
    from knowledge_texts t where t.app_id = old.app_id and t.document_id = old.id
    on conflict do nothing;
    insert into knowledge_versions (app_id, document_id, number, source_id, title, file_id, metadata, content_type,
      bytes_hash, content_hash, total_lines, total_size, source_url, external_id, external_order, external_version,
      acl_id, created_at, started_at, ended_at, is_deletion)
    select old.app_id, old.id, old.version, old.source_id, old.title, old.file_id, old.metadata, old.content_type,
      old.bytes_hash, old.content_hash, old.total_lines, old.total_size, old.source_url, old.external_id,
      old.external_order, old.external_version, case when tg_op = 'DELETE' then old.acl_id end, old.created_at,
      started, moment, tg_op = 'DELETE'
    from knowledge_version_texts t
    where t.app_id = old.app_id and t.source_id = old.source_id and t.content_hash = old.content_hash
    on conflict do nothing;
    delete from knowledge_versions v where v.app_id = old.app_id and v.document_id = old.id and v.number in (
      select o.number from (
        select number, row_number() over newest as place, sum(total_size) over newest - total_size as newer_bytes
        from knowledge_versions where app_id = old.app_id and document_id = old.id
        window newest as (order by number desc)) o
      where o.place > 1000 or o.newer_bytes >= 268435456);
  end if;
  if tg_op = 'UPDATE' then
    return new;
  end if;
  return old;
end $$;
create trigger knowledge_documents_changed before update on knowledge_documents for each row
  when ((old.content_hash, old.title, old.metadata, old.content_type, old.source_url)
    is distinct from (new.content_hash, new.title, new.metadata, new.content_type, new.source_url))
  execute function keep_version();
create trigger knowledge_documents_deleted before delete on knowledge_documents for each row
  execute function keep_version();

-- Deletes the texts that no version has any more.
create function forget_version_texts() returns trigger language plpgsql as $$
begin
  delete from knowledge_version_texts t using (
    select distinct app_id, source_id, content_hash from gone) g
  where t.app_id = g.app_id and t.source_id = g.source_id and t.content_hash = g.content_hash
    and not exists (select from knowledge_versions v
      where v.app_id = g.app_id and v.source_id = g.source_id and v.content_hash = g.content_hash);
  return null;
end $$;
create trigger knowledge_versions_deleted after delete on knowledge_versions referencing old table as gone
  for each statement execute function forget_version_texts();

-- An ingestion that brings back what documents were.
alter table knowledge_ingestions drop constraint knowledge_ingestions_kind_check;
alter table knowledge_ingestions add constraint knowledge_ingestions_kind_check
  check (kind in ('push', 'pull', 'replace', 'batch', 'restore'));
