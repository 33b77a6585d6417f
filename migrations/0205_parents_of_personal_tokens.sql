-- The personal token with which this one was created. It ends with it. Null for the others, and for tokens from before this
-- column. Tokens are deleted only with their user, so it has no foreign key.
alter table personal_tokens add column parent_id uuid;
create index personal_tokens_parent on personal_tokens (app_id, parent_id) where parent_id is not null;
