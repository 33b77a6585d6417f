-- Structured extraction: data that validates against a JSON Schema, taken from the Markdown by a language model.

-- Present when the extraction has a schema: its outputs that wait for data, have it or failed, and the pieces of their
-- texts. `tokens` counts requests in flight with what they may use at most.
alter table extractions
  add column data_pending integer,
  add column data_done integer,
  add column data_failed integer,
  add column data_pieces integer,
  add column data_pieces_done integer,
  add column tokens bigint not null default 0,
  add column requests integer not null default 0;

create table extraction_schemas (
  app_id uuid not null,
  extraction_id uuid not null,
  -- As text: members keep their order and doubles.
  schema json not null,
  instructions text,
  primary key (app_id, extraction_id),
  foreign key (app_id, extraction_id) references extractions (app_id, id) on delete cascade
);

-- The data of an output. `data` and `spans` are set when it is done; file_id is the file that has both.
create table extraction_data (
  app_id uuid not null,
  output_id uuid not null,
  extraction_id uuid not null,
  state text not null check (state in ('pending', 'done', 'failed')),
  -- The pieces of its text, once that is divided.
  pieces integer,
  data json,
  spans json,
  error jsonb,
  file_id uuid,
  primary key (app_id, output_id),
  foreign key (app_id, extraction_id) references extractions (app_id, id) on delete cascade,
  foreign key (app_id, output_id) references extraction_outputs (app_id, id) on delete cascade,
  foreign key (app_id, file_id) references files (app_id, id) on delete set null (file_id)
);
create index extraction_data_extraction on extraction_data (app_id, extraction_id, state);
create index extraction_data_file on extraction_data (app_id, file_id) where file_id is not null;

-- What the language model returned for a piece of a text, or for results put together, until the output has its data.
create table extraction_parts (
  app_id uuid not null,
  output_id uuid not null,
  key text not null,
  result json not null,
  primary key (app_id, output_id, key),
  foreign key (app_id, output_id) references extraction_data (app_id, output_id) on delete cascade
);
