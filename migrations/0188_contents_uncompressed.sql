-- A pushed content is read and deleted soon after it is written, so its compression costs more than it saves.
alter table knowledge_ingestion_items alter column content set storage external;
