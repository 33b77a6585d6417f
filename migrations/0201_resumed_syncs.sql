-- Whether another connector has resumed the sync: whoever ends it must then name its fence.
alter table knowledge_syncs add column is_resumed boolean not null default false;
