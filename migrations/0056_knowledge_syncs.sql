-- Programs that fill a source ("connectors") name each document themselves. The order is theirs too: a document with a
-- higher one is never replaced by one with a lower one.
alter table knowledge_documents
  add column external_id text,
  add column external_order bigint,
  -- The sync or pull that saw the document last.
  add column external_seen_by uuid;
create unique index knowledge_documents_external on knowledge_documents (app_id, source_id, external_id)
  where external_id is not null;

-- One row for each source that was ever synced. The lease belongs to the process that works through its items.
create table knowledge_sync_states (
  app_id uuid not null,
  source_id uuid not null,
  fence bigint not null default 0,
  cursor text,
  next_position bigint not null default 0,
  lease_holder uuid,
  lease_until timestamptz,
  primary key (app_id, source_id),
  foreign key (app_id, source_id) references knowledge_sources (app_id, id) on delete cascade
);

create table knowledge_syncs (
  app_id uuid not null,
  id uuid not null,
  source_id uuid not null,
  mode text not null check (mode in ('full', 'changes')),
  status text not null default 'active' check (status in ('active', 'completing', 'succeeded', 'aborted')),
  fence bigint not null,
  cursor text,
  batches integer not null default 0,
  upserts integer not null default 0,
  documents_before integer not null,
  stats jsonb not null default '{}'::jsonb,
  ttl_seconds integer not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  completed_at timestamptz,
  primary key (app_id, id),
  foreign key (app_id, source_id) references knowledge_sources (app_id, id) on delete cascade
);
create unique index knowledge_syncs_live on knowledge_syncs (app_id, source_id)
  where status in ('active', 'completing');
create index knowledge_syncs_newest on knowledge_syncs (app_id, source_id, created_at desc, id desc);

-- The digests of accepted batches, by which a repeated one is recognised.
create table knowledge_sync_batches (
  app_id uuid not null,
  sync_id uuid not null,
  number integer not null,
  digest bytea not null,
  primary key (app_id, sync_id, number),
  foreign key (app_id, sync_id) references knowledge_syncs (app_id, id) on delete cascade
);

-- Accepted changes that are not in the index yet, in order. Each is deleted by the transaction that applies it.
create table knowledge_sync_items (
  app_id uuid not null,
  source_id uuid not null,
  position bigint not null,
  sync_id uuid not null,
  external_id text not null,
  external_order bigint,
  is_deletion boolean not null default false,
  file_id uuid,
  content bytea,
  is_text boolean not null default false,
  content_type text,
  filename text,
  title text,
  metadata jsonb,
  source_url text,
  primary key (app_id, source_id, position),
  foreign key (app_id, sync_id) references knowledge_syncs (app_id, id) on delete cascade
);
create index knowledge_sync_items_sync on knowledge_sync_items (app_id, sync_id);
create index knowledge_sync_items_external on knowledge_sync_items (app_id, source_id, external_id);

-- Deletions that had an order, so that an older version does not bring the document back. Deleted after some days.
create table knowledge_tombstones (
  app_id uuid not null,
  source_id uuid not null,
  external_id text not null,
  external_order bigint not null,
  deleted_at timestamptz not null default now(),
  primary key (app_id, source_id, external_id),
  foreign key (app_id, source_id) references knowledge_sources (app_id, id) on delete cascade
);
create index knowledge_tombstones_age on knowledge_tombstones (deleted_at);
