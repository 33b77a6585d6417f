-- Pages whose document was deleted while a pull of its source is under way: the pull leaves them out. Rows go with the
-- end of the pull. The page of a file/document source is ''.
create table knowledge_pull_removals (
  app_id uuid not null,
  ingestion_id uuid not null,
  url text not null,
  foreign key (app_id, ingestion_id) references knowledge_ingestions (app_id, id) on delete cascade
);
create index knowledge_pull_removals_ingestion on knowledge_pull_removals (app_id, ingestion_id);

-- What a page was at its last visit, in full: the links that it led on by, since a page that is unchanged does not
-- repeat them; where it was found after redirects, since validators are those of that URL; its canonical URL.
delete from crawled_pages;
alter table crawled_pages
  add column final_url text not null,
  add column canonical text not null,
  -- SHA-256 of everything that a consumer gets of the page; content_hash is that of its text alone.
  add column page_hash bytea not null,
  -- One URL a line.
  add column links text not null,
  alter column content_hash set not null;
