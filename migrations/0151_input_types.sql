-- Of a model for embeddings: what its service is told that a question is, and that a passage is.
alter table models add column query_input_type text;
alter table models add column passage_input_type text;

-- Cohere's models for embeddings and for reranking.
alter table models drop constraint models_provider_check;
alter table models add constraint models_provider_check
  check (provider in ('openai', 'anthropic', 'google', 'cohere')) not valid;
alter table models validate constraint models_provider_check;
