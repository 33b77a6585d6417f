-- What a model is for. Null: it writes text.
alter table models add column kind text check (kind in ('embedding', 'rerank'));
-- Of a model for embeddings: the numbers of each vector, and the texts of one request.
alter table models add column dimensions integer;
alter table models add column batch_texts integer;
-- What a call was for. Null: to write text.
alter table model_calls add column operation text;

-- Sources that name an embedder, or that return to the installation's. Without a row, the installation's is used.
create table knowledge_embedders (
  app_id uuid not null,
  source_id uuid not null,
  -- The model or alias that the source names, and the space of its vectors. Null: the installation's.
  name text,
  space text,
  -- Those whose vectors searches use. Null: the installation's.
  serving_name text,
  serving_space text,
  -- Increases when other vectors begin to serve, so that no cache mixes them with earlier ones.
  serving_version integer not null default 0,
  -- Whether documents may lack vectors of `space`, or the vectors of another space still serve.
  pending boolean not null,
  -- Failures in a row, when to try again, and why the last one failed.
  tries integer not null default 0,
  retry_at timestamptz,
  error text,
  -- What the vectors of `space` have used since the embedder was named.
  tokens bigint not null default 0,
  cost bigint not null default 0,
  started_at timestamptz not null,
  completed_at timestamptz,
  primary key (app_id, source_id),
  foreign key (app_id, source_id) references knowledge_sources on delete cascade
);
create index knowledge_embedders_pending on knowledge_embedders (app_id, source_id) where pending;
