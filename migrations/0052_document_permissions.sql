-- Which of a source's readers see a document.

-- Groups of users, as issuers and connectors name them. Equal names of two namespaces are two groups.
create table groups (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  namespace text not null,
  external_id text not null,
  name text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);
create unique index groups_external_id on groups (app_id, sandbox_id, namespace, external_id);
create index groups_newest on groups (app_id, sandbox_id, created_at desc, id desc);

create table group_members (
  app_id uuid not null,
  group_id uuid not null,
  user_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (app_id, group_id, user_id),
  foreign key (app_id, group_id) references groups (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create index group_members_user on group_members (app_id, user_id);

-- When the last token of an account left out its groups.
alter table external_accounts add column groups_overage boolean not null default false;

-- A list of grants, stored once for all documents that have it. Its principals never change.
create table knowledge_acls (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  digest bytea not null,
  created_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);
create unique index knowledge_acls_digest on knowledge_acls (app_id, sandbox_id, digest);

create table knowledge_acl_principals (
  app_id uuid not null,
  acl_id uuid not null,
  principal_type text not null
    check (principal_type in ('user', 'team', 'org', 'org_role', 'agent', 'everyone', 'group')),
  principal_id uuid not null default '00000000-0000-0000-0000-000000000000',
  principal_role text not null default '' check (principal_role in ('', 'admin', 'member', 'viewer')),
  primary key (app_id, acl_id, principal_type, principal_id, principal_role),
  foreign key (app_id, acl_id) references knowledge_acls (app_id, id) on delete cascade
);
create index knowledge_acl_principals_principal
  on knowledge_acl_principals (app_id, principal_type, principal_id, principal_role, acl_id);

-- Null: every reader of the source sees the document. acl_version is that of its index when its readers or its place
-- last changed; 0 if it was never restricted.
alter table knowledge_documents add column acl_id uuid, add column acl_version bigint not null default 0,
  add foreign key (app_id, acl_id) references knowledge_acls (app_id, id);
create index knowledge_documents_acl on knowledge_documents (app_id, acl_id) where acl_id is not null;
create index knowledge_documents_acl_version on knowledge_documents (app_id, source_id, acl_version)
  where acl_version > 0;
create index knowledge_documents_language on knowledge_documents (app_id, source_id, language)
  where acl_id is null and chunk_count > 0;

-- acl_version counts changes of restricted documents; 0 if there never was one. restricted_chunks are those of them
-- that are live, and open_added counts the chunks ever added to documents that every reader sees.
alter table knowledge_indexes add column acl_version bigint not null default 0,
  add column restricted_chunks integer not null default 0, add column open_added bigint not null default 0;
update knowledge_indexes set open_added = next_ordinal;
-- How many chunks that every reader sees had been added when the model was trained.
alter table knowledge_models add column open_added bigint not null default 0;
update knowledge_models set open_added = next_ordinal;

-- The readers of an ingestion see all of its documents. Null: every reader of the source.
alter table knowledge_ingestions add column acl_ids uuid[];
create index knowledge_ingestions_document on knowledge_ingestions (app_id, (metadata ->> 'document'))
  where metadata ? 'document';
create index knowledge_ingestions_items on knowledge_ingestions using gin ((metadata -> 'items') jsonb_path_ops)
  where kind = 'batch';
-- has_acl: the document gets the readers of acl_id (null: all readers of its source); otherwise it keeps its readers.
alter table knowledge_ingestion_items add column acl_id uuid, add column has_acl boolean not null default false,
  add foreign key (app_id, acl_id) references knowledge_acls (app_id, id);
create index knowledge_ingestion_items_document on knowledge_ingestion_items (app_id, document_id)
  where document_id is not null;
