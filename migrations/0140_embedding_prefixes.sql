-- Of a model for embeddings: text that it expects before a question, and before a passage.
alter table models add column query_prefix text;
alter table models add column passage_prefix text;
