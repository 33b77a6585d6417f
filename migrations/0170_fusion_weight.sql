-- Of a model for embeddings: the weight of its ranking beside that of the text in hybrid searches. Null is 1.
alter table models add column fusion_weight double precision;
