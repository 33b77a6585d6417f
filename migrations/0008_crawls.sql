-- Crawls: the pages left to fetch and the result of each page. A crawl works for an extraction or an ingestion and has
-- the same id; `consumer` says which kind.
create table crawls (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  consumer text not null,
  -- Pages of one collection are fetched conditionally. Null: every page is fetched in full.
  collection_id uuid,
  settings jsonb not null,
  -- A worker raises it when it takes up the crawl, and the worker before it can then commit nothing more.
  epoch bigint not null default 0,
  -- The URL of the start page after redirects: its host is the crawl's.
  scope_url text,
  sitemap_read boolean not null default false,
  discovered integer not null default 0,
  done integer not null default 0,
  failed integer not null default 0,
  -- Pages that turned out to be another page once fetched: they count against the page limit, not as progress.
  dropped integer not null default 0,
  -- Rows of crawl_pages that record why a page was left out; their number is bounded.
  left_out integer not null default 0,
  finished_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);
-- For /metrics: how many run, and since when.
create index crawls_unfinished on crawls (created_at) where finished_at is null;

create table crawl_pages (
  app_id uuid not null,
  crawl_id uuid not null,
  url_hash bytea not null,
  url text not null,
  -- The order of discovery.
  position bigint generated always as identity,
  -- Links away from the start page.
  depth integer not null,
  -- Lower ones go first: in a refresh 0 is what a sitemap calls changed since the last fetch, 2 what it calls unchanged.
  priority smallint not null default 1,
  -- alias: another spelling of a page that has its own row.
  state text not null check (state in ('queued', 'done', 'failed', 'left_out', 'alias')),
  reason text,
  tries integer not null default 0,
  not_before timestamptz not null default '-infinity',
  canonical_hash bytea,
  content_hash bytea,
  primary key (app_id, crawl_id, url_hash),
  foreign key (app_id, crawl_id) references crawls (app_id, id) on delete cascade
);
create index crawl_pages_queued on crawl_pages (app_id, crawl_id, priority, position) where state = 'queued';
create index crawl_pages_content on crawl_pages (app_id, crawl_id, canonical_hash) where state = 'done';

-- The robots.txt of each host of a crawl, read once.
create table crawl_hosts (
  app_id uuid not null,
  crawl_id uuid not null,
  origin text not null,
  -- found: `robots` holds its text. open: the host has none. closed: it could not be read, so nothing may be fetched.
  state text not null check (state in ('found', 'open', 'closed')),
  robots text,
  primary key (app_id, crawl_id, origin),
  foreign key (app_id, crawl_id) references crawls (app_id, id) on delete cascade
);

-- A collection's pages at the last fetch, so that the next one asks only for changes.
create table crawled_pages (
  app_id uuid not null,
  sandbox_id uuid not null,
  collection_id uuid not null,
  url_hash bytea not null,
  url text not null,
  -- The URL after redirects: the validators are those of this one.
  final_url text not null,
  canonical text not null,
  etag text,
  last_modified text,
  -- SHA-256 of the text, and of everything that a consumer gets of the page.
  content_hash bytea not null,
  page_hash bytea not null,
  -- One URL a line. A page that is unchanged does not repeat its links.
  links text not null,
  fetched_at timestamptz not null,
  primary key (app_id, collection_id, url_hash),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);

-- What each process has of each host that is crawled, for all apps together. Unlogged: after a crash of the database
-- every process claims its shares again.
create unlogged table crawl_host_shares (
  -- Name and port, as URLs have them.
  host text primary key,
  -- By the name of the process; src/crawls/host-shares.ts says what is in them.
  shares jsonb not null default '{}',
  -- When the next request may start, where the host wants pauses.
  next_at timestamptz not null default '-infinity',
  -- The row means nothing after this.
  used_until timestamptz not null default now() + interval '1 minute'
);
