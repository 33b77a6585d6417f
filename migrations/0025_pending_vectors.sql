-- Ingestions whose metadata says that vectors are pending, or why they were given up.
create index knowledge_ingestions_embedding on knowledge_ingestions (app_id, source_id) where metadata ? 'embedding';
