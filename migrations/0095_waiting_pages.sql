-- How many pages of a crawl are read and wait until it is known what the site repeats, so that its progress can say so.

alter table crawls add column waiting integer not null default 0;

alter table extractions add column waiting integer;
