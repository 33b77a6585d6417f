-- Documents whose texts the embedder refuses while it embeds others. They are tried again at retry_at; null: no more.
create table knowledge_embedding_refusals (
  app_id uuid not null,
  document_id uuid not null,
  model text not null,
  tries integer not null,
  retry_at timestamptz,
  reason text not null,
  refused_at timestamptz not null default now(),
  primary key (app_id, document_id),
  foreign key (app_id, document_id) references knowledge_documents (app_id, id) on delete cascade
);
