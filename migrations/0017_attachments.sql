-- Finds what became of a file that was attached to a source.
create index knowledge_ingestion_items_file on knowledge_ingestion_items (app_id, file_id) where file_id is not null;
