-- The bytes of a model's words, without those of its chunks, some of which a caller may not see. Null in models of older
-- releases.
alter table knowledge_models add column word_bytes bigint;
