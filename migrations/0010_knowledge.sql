-- Knowledge: sources, their documents and chunks, ingestions, the full-text index and the vectors.

create table knowledge_sources (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  type text not null,
  state text not null default 'active' check (state in ('active', 'paused')),
  payload jsonb,
  metadata jsonb,
  org_id uuid,
  team_id uuid,
  user_id uuid,
  agent_id uuid,
  thread_id uuid,
  installation_id uuid,
  parent_source_id uuid,
  -- When the schedule in the payload is due next. Null without a schedule and while paused.
  next_pull_at timestamptz,
  -- The token in the inbound URL of this source: its SHA-256, and the token itself wrapped by the root secret.
  inbound_digest bytea,
  inbound_token bytea,
  -- The secret that signs what is posted to the inbound URL, wrapped by the root secret; null accepts unsigned posts.
  -- After a rotation, the previous one is accepted until its time.
  inbound_secret bytea,
  inbound_previous_secret bytea,
  inbound_previous_secret_until timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id),
  foreign key (app_id, team_id) references teams (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade,
  foreign key (app_id, agent_id) references agents (app_id, id) on delete cascade,
  foreign key (app_id, thread_id) references threads (app_id, id) on delete set null (thread_id),
  foreign key (app_id, installation_id) references installations (app_id, id) on delete cascade,
  foreign key (app_id, parent_source_id) references knowledge_sources (app_id, id) on delete set null (parent_source_id),
  check (num_nonnulls(team_id, user_id, agent_id) <= 1)
);
create index knowledge_sources_newest on knowledge_sources (app_id, sandbox_id, created_at desc, id desc);
create index knowledge_sources_org on knowledge_sources (app_id, org_id) where org_id is not null;
create index knowledge_sources_team on knowledge_sources (app_id, team_id) where team_id is not null;
create index knowledge_sources_user on knowledge_sources (app_id, user_id) where user_id is not null;
create index knowledge_sources_agent on knowledge_sources (app_id, agent_id) where agent_id is not null;
create index knowledge_sources_thread on knowledge_sources (app_id, thread_id) where thread_id is not null;
create index knowledge_sources_installation on knowledge_sources (app_id, installation_id)
  where installation_id is not null;
create index knowledge_sources_parent on knowledge_sources (app_id, parent_source_id)
  where parent_source_id is not null;
create unique index knowledge_sources_inbound on knowledge_sources (app_id, inbound_digest)
  where inbound_digest is not null;
create index knowledge_sources_due on knowledge_sources (next_pull_at) where next_pull_at is not null;
create trigger delete_knowledge_sources before delete on orgs
  for each row execute function delete_org_level_rows('knowledge_sources', 'agent');

-- Signed messages that an inbound URL has accepted, so that none is stored twice.
create table inbound_messages (
  app_id uuid not null,
  source_id uuid not null,
  -- SHA-256 of the message's id, which its sender chose.
  digest bytea not null,
  ingestion_id uuid not null,
  -- The newest time that a signature of it named.
  sent_at timestamptz not null,
  received_at timestamptz not null,
  primary key (app_id, source_id, digest),
  foreign key (app_id, source_id) references knowledge_sources (app_id, id) on delete cascade
);
create index inbound_messages_age on inbound_messages (received_at);

create table knowledge_ingestions (
  app_id uuid not null,
  id uuid not null,
  source_id uuid not null,
  status text not null default 'pending'
    check (status in ('pending', 'running', 'awaiting_callback', 'succeeded', 'failed')),
  -- Queued behind the active one: at most one ingestion of a source is active.
  queued boolean not null default false,
  kind text not null check (kind in ('push', 'pull', 'replace', 'batch')),
  metadata jsonb not null default '{}',
  stats jsonb not null default '{}',
  error jsonb,
  -- A worker renews its lease. When the lease expires, another worker may take over.
  lease_holder uuid,
  lease_until timestamptz,
  -- The run that started it.
  cause_tree_id uuid default cause_tree_id(),
  cause_depth integer not null default cause_depth(),
  started_at timestamptz,
  completed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, source_id) references knowledge_sources (app_id, id) on delete cascade
);
create unique index knowledge_ingestions_active on knowledge_ingestions (app_id, source_id)
  where status in ('pending', 'running', 'awaiting_callback') and not queued;
create index knowledge_ingestions_newest on knowledge_ingestions (app_id, source_id, created_at desc, id desc);
create index knowledge_ingestions_unfinished on knowledge_ingestions (created_at)
  where status in ('pending', 'running', 'awaiting_callback');

-- The items of an ingestion: pushed contents, or pages of a pull. They are deleted when the ingestion ends.
create table knowledge_ingestion_items (
  app_id uuid not null,
  ingestion_id uuid not null,
  ordinal integer not null,
  state text not null default 'pending' check (state in ('pending', 'done', 'failed')),
  -- The document to replace, when it is known in advance.
  document_id uuid,
  file_id uuid,
  content bytea,
  -- The client sent the content as text.
  is_text boolean not null default false,
  content_type text,
  filename text,
  title text,
  metadata jsonb,
  dedupe boolean not null default false,
  -- { document, reused } or { error }.
  result jsonb,
  primary key (app_id, ingestion_id, ordinal),
  foreign key (app_id, ingestion_id) references knowledge_ingestions (app_id, id) on delete cascade
);

-- Pages whose document was deleted while a pull of its source was in progress: the pull leaves them out. Rows go with the
-- end of the pull. The URL of a file/document source is ''.
create table knowledge_pull_removals (
  app_id uuid not null,
  ingestion_id uuid not null,
  url_hash bytea not null,
  primary key (app_id, ingestion_id, url_hash),
  foreign key (app_id, ingestion_id) references knowledge_ingestions (app_id, id) on delete cascade
);

create table knowledge_documents (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  source_id uuid not null,
  title text,
  file_id uuid,
  metadata jsonb not null default '{}',
  content_type text,
  -- SHA-256 of the bytes as they were received, and of the text extracted from them.
  bytes_hash bytea not null,
  content_hash bytea not null,
  total_lines integer not null,
  total_size integer not null,
  source_url text,
  -- The last pull that found its page.
  seen_by uuid,
  -- Its chunks have the ordinals from first_ordinal.
  first_ordinal integer not null,
  chunk_count integer not null,
  word_count integer not null,
  -- The language in which its words are stemmed.
  language text not null default 'none',
  -- The model whose vectors are stored. Null while they are pending.
  embedding_model text,
  indexed_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, source_id) references knowledge_sources (app_id, id) on delete cascade,
  foreign key (app_id, file_id) references files (app_id, id) on delete set null (file_id)
);
create index knowledge_documents_newest on knowledge_documents (app_id, source_id, created_at desc, id desc);
create index knowledge_documents_bytes on knowledge_documents (app_id, source_id, bytes_hash);
create index knowledge_documents_file on knowledge_documents (app_id, file_id) where file_id is not null;
create index knowledge_documents_url on knowledge_documents (app_id, source_id, md5(source_url))
  where source_url is not null;
create index knowledge_documents_unembedded on knowledge_documents (app_id, created_at) where embedding_model is null;
create index knowledge_documents_model on knowledge_documents (app_id, embedding_model);

-- A document's text as UTF-8, uncompressed, so that a slice is read without the rest.
create table knowledge_texts (
  app_id uuid not null,
  document_id uuid not null,
  content bytea not null,
  primary key (app_id, document_id),
  foreign key (app_id, document_id) references knowledge_documents (app_id, id) on delete cascade
);
alter table knowledge_texts alter column content set storage external;

create table knowledge_chunks (
  app_id uuid not null,
  source_id uuid not null,
  ordinal integer not null,
  id uuid not null,
  document_id uuid not null,
  start_byte integer not null,
  end_byte integer not null,
  start_line integer not null,
  end_line integer not null,
  -- Where the document's text has marks of pages.
  start_page integer,
  end_page integer,
  heading_path jsonb not null,
  -- SHA-256 of the text that was embedded. Equal chunks keep their vectors when a document is replaced.
  hash bytea not null,
  primary key (app_id, source_id, ordinal)
);
create index knowledge_chunks_document on knowledge_chunks (app_id, document_id, ordinal);

-- One row per source: the statistics for BM25, and the ordinal of the next chunk. A change to the index of a source locks
-- this row first.
create table knowledge_indexes (
  app_id uuid not null,
  source_id uuid not null,
  -- The languages of its documents: a query's words are stemmed in each of them.
  languages text[] not null default '{}',
  -- The version of the reading of words that its postings were made by. A job makes those of an older one again.
  analysis integer not null default 0,
  -- The index holds nothing below this ordinal.
  first_ordinal integer not null default 0,
  next_ordinal integer not null default 0,
  chunk_count integer not null default 0,
  word_count bigint not null default 0,
  bundled_documents integer not null default 0,
  bundled_chunks integer not null default 0,
  vector_version bigint not null default 0,
  primary key (app_id, source_id),
  foreign key (app_id, source_id) references knowledge_sources (app_id, id) on delete cascade
);

-- Ordinals of replaced or deleted chunks whose postings are still in the index.
create table knowledge_dead_ranges (
  app_id uuid not null,
  source_id uuid not null,
  first_ordinal integer not null,
  chunk_count integer not null,
  primary key (app_id, source_id, first_ordinal)
);

-- Newly indexed documents, one row each, until enough of them are merged into a segment, sorted by term.
create table knowledge_bundles (
  app_id uuid not null,
  source_id uuid not null,
  first_ordinal integer not null,
  chunk_count integer not null,
  content bytea not null,
  primary key (app_id, source_id, first_ordinal)
);

-- A segment holds the postings of a range of ordinals and never changes. Small segments are merged into larger ones.
create sequence knowledge_segment_numbers;

create table knowledge_segments (
  app_id uuid not null,
  source_id uuid not null,
  segment bigint not null,
  level integer not null,
  first_ordinal integer not null,
  last_ordinal integer not null,
  primary key (app_id, source_id, segment)
);

create table knowledge_postings (
  app_id uuid not null,
  segment bigint not null,
  term text collate "C" not null,
  postings bytea not null,
  positions bytea not null,
  primary key (app_id, segment, term)
);

-- The vector of a chunk as 16-bit floats, in the row itself: a search reads a few hundred of them.
create table knowledge_vectors (
  app_id uuid not null,
  source_id uuid not null,
  ordinal integer not null,
  model text not null,
  content bytea not null,
  primary key (app_id, source_id, ordinal, model)
) with (toast_tuple_target = 8160);
alter table knowledge_vectors alter column content set storage main;

-- Sign codes of vectors, packed by ranges of ordinals: a search scans all of a source's.
create table knowledge_codes (
  app_id uuid not null,
  source_id uuid not null,
  model text not null,
  first_ordinal integer not null,
  chunk_count integer not null,
  version bigint not null,
  content bytea not null,
  primary key (app_id, source_id, model, first_ordinal)
);
alter table knowledge_codes alter column content set storage external;
create index knowledge_codes_version on knowledge_codes (app_id, source_id, model, version);

-- What a source's own texts say about which words belong together: one model per source, replaced as a whole.
create table knowledge_models (
  app_id uuid not null,
  source_id uuid not null,
  -- 0 until the first one is complete. Rows of other versions are unfinished or replaced.
  version integer not null default 0,
  dimensions integer not null default 0,
  word_count integer not null default 0,
  -- The live chunks of the source when it was trained, and the ordinal behind the last of them.
  chunk_count integer not null default 0,
  next_ordinal integer not null default 0,
  -- Counts additions to the codes.
  code_version bigint not null default 0,
  -- A process that trains the next version renews its lease.
  lease_holder uuid,
  lease_until timestamptz,
  trained_at timestamptz,
  primary key (app_id, source_id),
  foreign key (app_id, source_id) references knowledge_sources (app_id, id) on delete cascade
);
create index knowledge_models_leases on knowledge_models (app_id) where lease_holder is not null;

-- The vector of a word, weighted, and how often a chunk contains it on average.
create table knowledge_model_terms (
  app_id uuid not null,
  source_id uuid not null,
  version integer not null,
  term text collate "C" not null,
  frequency real not null,
  vector bytea not null,
  primary key (app_id, source_id, version, term)
);

-- Vectors of chunks in a model, packed by ranges of ordinals: a search scans all of a source's.
create table knowledge_model_codes (
  app_id uuid not null,
  source_id uuid not null,
  version integer not null,
  first_ordinal integer not null,
  chunk_count integer not null,
  code_version bigint not null,
  content bytea not null,
  primary key (app_id, source_id, version, first_ordinal)
);
alter table knowledge_model_codes alter column content set storage external;
create index knowledge_model_codes_version on knowledge_model_codes (app_id, source_id, version, code_version);

-- Deleted sources, whatever deleted them. A job deletes what the index holds of them.
create table removed_knowledge_sources (
  app_id uuid not null,
  source_id uuid not null,
  removed_at timestamptz not null default now(),
  primary key (app_id, source_id)
);

create function remember_removed_knowledge_source() returns trigger language plpgsql as $$
begin
  insert into removed_knowledge_sources (app_id, source_id) values (old.app_id, old.id) on conflict do nothing;
  return null;
end $$;
create trigger knowledge_sources_removed after delete on knowledge_sources
  for each row execute function remember_removed_knowledge_source();

-- Documents copy the sandbox of their source: when the source is deleted, it is too late to read it there.
create function place_document() returns trigger language plpgsql as $$
begin
  select s.sandbox_id into new.sandbox_id from knowledge_sources s
  where s.app_id = new.app_id and s.id = new.source_id;
  return new;
end $$;
create trigger knowledge_documents_placed before insert on knowledge_documents
  for each row execute function place_document();

-- The quota of documents.
create function documents_counted() returns trigger language plpgsql as $$
begin
  perform app_use(a.app_id, a.sandbox_id, 'documents', a.documents) from (
    select app_id, sandbox_id, count(*) as documents from added group by app_id, sandbox_id) a;
  return null;
end $$;
create trigger knowledge_documents_counted after insert on knowledge_documents referencing new table as added
  for each statement execute function documents_counted();

create function documents_given_back() returns trigger language plpgsql as $$
begin
  perform app_use(g.app_id, g.sandbox_id, 'documents', -g.documents) from (
    select app_id, sandbox_id, count(*) as documents from gone group by app_id, sandbox_id) g
  where exists (select 1 from sandboxes s where s.app_id = g.app_id and s.id = g.sandbox_id);
  return null;
end $$;
create trigger knowledge_documents_given_back after delete on knowledge_documents referencing old table as gone
  for each statement execute function documents_given_back();
