-- Crawls under way: what is left to fetch and what came of each page. A crawl works for something else (an extraction,
-- an ingestion) whose id it shares; `consumer` says which kind.
create table crawls (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  consumer text not null,
  -- Pages of one collection are fetched conditionally; null: every page is fetched in full.
  collection_id uuid,
  settings jsonb not null,
  -- Who works on it: raised by each that takes it up, so whoever held it before can commit nothing more.
  epoch bigint not null default 0,
  -- Where the start page was found, after redirects: its host is the crawl's.
  scope_url text,
  sitemap_read boolean not null default false,
  discovered integer not null default 0,
  done integer not null default 0,
  failed integer not null default 0,
  -- Pages that were fetched and turned out to be another one: they count against the page cap, not as progress.
  dropped integer not null default 0,
  -- Rows of crawl_pages that tell why a page was left out; a bounded number is kept.
  left_out integer not null default 0,
  finished_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);

create table crawl_pages (
  app_id uuid not null,
  crawl_id uuid not null,
  url_hash bytea not null,
  url text not null,
  -- The order of discovery.
  position bigint generated always as identity,
  -- Links away from the start page.
  depth integer not null,
  -- alias: another spelling of a page that has a row of its own.
  state text not null check (state in ('queued', 'done', 'failed', 'left_out', 'alias')),
  reason text,
  tries integer not null default 0,
  not_before timestamptz not null default '-infinity',
  canonical_hash bytea,
  content_hash bytea,
  primary key (app_id, crawl_id, url_hash),
  foreign key (app_id, crawl_id) references crawls (app_id, id) on delete cascade
);
create index crawl_pages_queued on crawl_pages (app_id, crawl_id, position) where state = 'queued';
create index crawl_pages_content on crawl_pages (app_id, crawl_id, canonical_hash) where state = 'done';

-- robots.txt of each host of a crawl, read once.
create table crawl_hosts (
  app_id uuid not null,
  crawl_id uuid not null,
  origin text not null,
  -- found: `robots` holds its text. open: there is none. closed: it could not be had, so nothing may be fetched.
  state text not null check (state in ('found', 'open', 'closed')),
  robots text,
  primary key (app_id, crawl_id, origin),
  foreign key (app_id, crawl_id) references crawls (app_id, id) on delete cascade
);

-- What a collection's pages were when they were last fetched, to ask the next time only for what changed.
create table crawled_pages (
  app_id uuid not null,
  sandbox_id uuid not null,
  collection_id uuid not null,
  url_hash bytea not null,
  url text not null,
  etag text,
  last_modified text,
  content_hash bytea,
  fetched_at timestamptz not null,
  primary key (app_id, collection_id, url_hash),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);

-- Link and site extractions: how far they are, and under which names their outputs were written.
alter table extractions
  add column discovered integer,
  add column done integer,
  add column failed integer;
alter table extraction_outputs add column name text;
create unique index extraction_outputs_name on extraction_outputs (app_id, extraction_id, name) where name is not null;
create table extraction_names (
  app_id uuid not null,
  extraction_id uuid not null,
  stem text not null,
  -- The highest number given to this stem; 1 is the stem by itself.
  number integer not null,
  primary key (app_id, extraction_id, stem),
  foreign key (app_id, extraction_id) references extractions (app_id, id) on delete cascade
);
