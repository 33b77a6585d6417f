import { hash } from 'node:crypto';
import type { Db, Transaction } from '../db/database.ts';
import { sandboxIsThere } from '../tenancy/visible.ts';
import type { Crawl, CrawlSettings } from './types.ts';

export type NewCrawl = {
  appId: string;
  sandboxId: string;
  id: string;
  consumer: string;
  collectionId: string | null;
  settings: CrawlSettings;
};

export type QueuedPage = {
  url: string;
  urlHash: Buffer;
  position: number;
  depth: number;
  tries: number;
  /** The page, if it was read and waits to be handed over. */
  held: string | null;
};
export type HostRow = { origin: string; state: 'found' | 'open' | 'closed'; robots: string | null };
/** The stored state of a page in a collection: its validators, and what is still valid while the page is unchanged. */
export type PageState = {
  url: string;
  /** The page's URL after redirects, to which the validators belong. */
  finalUrl: string;
  canonical: string;
  etag: string | null;
  lastModified: string | null;
  /** SHA-256 of the text, to find duplicates. */
  contentHash: Buffer;
  /** SHA-256 of everything that a consumer receives about the page. */
  pageHash: Buffer;
  links: string[];
  /** The keys of the boxes of its text, which are compared with those of other pages. */
  boxes: Buffer | null;
};

export function hashUrl(url: string): Buffer {
  return hash('sha256', url, 'buffer');
}

/** Byte strings in PostgreSQL's text format, because the driver does not support arrays of bytes. */
function byteas(values: readonly (Buffer | null)[]): (string | null)[] {
  return values.map((value) => (value === null ? null : `\\x${value.toString('hex')}`));
}

/** Inserts the crawl and its start page. */
export async function insertCrawl(db: Db, crawl: NewCrawl): Promise<void> {
  const { appId, sandboxId, id, consumer, collectionId, settings } = crawl;
  await db`
    insert into crawls (app_id, id, sandbox_id, consumer, collection_id, settings, discovered)
    values (${appId}, ${id}, ${sandboxId}, ${consumer}, ${collectionId}, ${db.json(settings)}, 1)`;
  await db`
    insert into crawl_pages (app_id, crawl_id, url_hash, url, depth, state)
    values (${appId}, ${id}, ${hashUrl(settings.startUrl)}, ${settings.startUrl}, 0, 'queued')`;
}

/** Takes over the crawl, so that an earlier worker can no longer commit. Undefined if it was deleted. */
export async function takeCrawl(db: Db, appId: string, id: string): Promise<Crawl | undefined> {
  const [row] = await db<Crawl[]>`
    update crawls c set epoch = epoch + 1
    where app_id = ${appId} and id = ${id} and finished_at is null and ${sandboxIsThere(db, 'c.app_id', 'c.sandbox_id')}
    returning *`;
  return row;
}

/** Locks and returns the crawl's current row, if this worker still holds it. */
export async function lockCrawl(tx: Transaction, crawl: Crawl): Promise<Crawl | undefined> {
  const [row] = await tx<Crawl[]>`
    select * from crawls where app_id = ${crawl.appId} and id = ${crawl.id} and epoch = ${crawl.epoch} for update`;
  return row;
}

/** Whether the crawl still exists and no other worker has taken it over. */
export async function isCrawlHeld(db: Db, crawl: Crawl): Promise<boolean> {
  const rows = await db`
    select 1 from crawls c where c.app_id = ${crawl.appId} and c.id = ${crawl.id} and c.epoch = ${crawl.epoch}
      and ${sandboxIsThere(db, 'c.app_id', 'c.sandbox_id')}`;
  return rows.length > 0;
}

export async function updateCrawl(tx: Transaction, crawl: Crawl): Promise<void> {
  await tx`
    update crawls set scope_url = ${crawl.scopeUrl}, sitemap_read = ${crawl.sitemapRead},
      discovered = ${crawl.discovered}, done = ${crawl.done}, failed = ${crawl.failed}, dropped = ${crawl.dropped},
      left_out = ${crawl.leftOut}, waiting = ${crawl.waiting}
    where app_id = ${crawl.appId} and id = ${crawl.id}`;
}

export async function deleteCrawl(db: Db, appId: string, id: string): Promise<void> {
  await db`delete from crawls where app_id = ${appId} and id = ${id}`;
}

type DueOptions = {
  /** Positions that are left out. */
  without: number[];
  count: number;
  /** Whether pages that were read and wait to be handed over are due, too. */
  withHeld: boolean;
};

/** The next due pages, by priority and then in the order of discovery. */
export async function listDuePages(
  db: Db,
  crawl: Crawl,
  { without, count, withHeld }: DueOptions,
): Promise<QueuedPage[]> {
  return db<QueuedPage[]>`
    select url, url_hash, position, depth, tries, held from crawl_pages
    where app_id = ${crawl.appId} and crawl_id = ${crawl.id} and state = 'queued' and not_before <= clock_timestamp()
      and (held is null or ${withHeld}) and not (position = any(${without}::bigint[]))
    order by priority, position limit ${count}`;
}

/**
 * Milliseconds until the next queued page is due (0 or less: it is due now), or undefined if none is queued. `withHeld`
 * counts those that wait to be handed over.
 */
export async function findNextDueMs(
  db: Db,
  crawl: Crawl,
  { withHeld }: Pick<DueOptions, 'withHeld'>,
): Promise<number | undefined> {
  const [row] = await db<[{ waitMs: number | null; queued: number }]>`
    select (extract(epoch from nullif(min(not_before), '-infinity') - clock_timestamp()) * 1000)::float8 as wait_ms,
      count(*)::integer as queued
    from crawl_pages where app_id = ${crawl.appId} and crawl_id = ${crawl.id} and state = 'queued'
      and (held is null or ${withHeld})`;
  return row.queued === 0 ? undefined : (row.waitMs ?? 0);
}

export async function finishPages(
  tx: Transaction,
  crawl: Crawl,
  pages: {
    urlHash: Buffer;
    state: 'done' | 'failed' | 'left_out';
    reason: string | null;
    canonicalHash: Buffer | null;
    contentHash: Buffer | null;
    boxes: Buffer | null;
  }[],
): Promise<void> {
  if (pages.length === 0) return;
  await tx`
    update crawl_pages set state = given.state, reason = given.reason, tries = tries + 1, held = null,
      canonical_hash = given.canonical_hash, content_hash = given.content_hash, boxes = given.boxes
    from unnest(${byteas(pages.map((page) => page.urlHash))}::text[]::bytea[], ${pages.map((page) => page.state)}::text[],
      ${pages.map((page) => page.reason)}::text[], ${byteas(pages.map((page) => page.canonicalHash))}::text[]::bytea[],
      ${byteas(pages.map((page) => page.contentHash))}::text[]::bytea[],
      ${byteas(pages.map((page) => page.boxes))}::text[]::bytea[])
      as given (url_hash, state, reason, canonical_hash, content_hash, boxes)
    where app_id = ${crawl.appId} and crawl_id = ${crawl.id} and crawl_pages.url_hash = given.url_hash`;
}

/** Stores a page that was read and waits to be handed over. */
export async function holdPage(
  tx: Transaction,
  crawl: Crawl,
  page: { urlHash: Buffer; boxes: Buffer | null; held: string },
): Promise<void> {
  await tx`
    update crawl_pages set held = ${page.held}, boxes = ${page.boxes}
    where app_id = ${crawl.appId} and crawl_id = ${crawl.id} and url_hash = ${page.urlHash}`;
}

/** The pages that wait to be handed over, in the order of discovery. */
export async function listHeldPages(db: Db, crawl: Crawl): Promise<(QueuedPage & { held: string })[]> {
  return db<(QueuedPage & { held: string })[]>`
    select url, url_hash, position, depth, tries, held from crawl_pages
    where app_id = ${crawl.appId} and crawl_id = ${crawl.id} and state = 'queued' and held is not null
    order by position`;
}

/**
 * The keys of the boxes of pages of the site: of those that the crawl has read, and of those that the collection has. At
 * most `count` pages, always the same ones while none is added.
 */
export async function listBoxes(db: Db, crawl: Crawl, count: number): Promise<Buffer[]> {
  const rows = await db<{ boxes: Buffer }[]>`
    select distinct on (url_hash) boxes from (
      (select url_hash, boxes, 0 as age from crawl_pages
        where app_id = ${crawl.appId} and crawl_id = ${crawl.id} and boxes is not null order by url_hash limit ${count})
      union all
      (select url_hash, boxes, 1 as age from crawled_pages
        where app_id = ${crawl.appId} and collection_id = ${crawl.collectionId} and boxes is not null
        order by url_hash limit ${count})
    ) as pages order by url_hash, age limit ${count}`;
  return rows.map(({ boxes }) => boxes);
}

export async function postponePage(tx: Transaction, crawl: Crawl, urlHash: Buffer, delayMs: number): Promise<void> {
  await tx`
    update crawl_pages set tries = tries + 1, not_before = clock_timestamp() + ${delayMs} * interval '1 millisecond'
    where app_id = ${crawl.appId} and crawl_id = ${crawl.id} and url_hash = ${urlHash}`;
}

/** Adds the pages that are not known yet, in order, at most `room` of them. Returns how many it added. */
export async function insertPages(
  tx: Transaction,
  crawl: Crawl,
  pages: { url: string; depth: number }[],
  room: number,
): Promise<number> {
  if (pages.length === 0 || room <= 0) return 0;
  const added = await tx`
    insert into crawl_pages (app_id, crawl_id, url_hash, url, depth, state)
    select ${crawl.appId}, ${crawl.id}, given.url_hash, given.url, given.depth, 'queued'
    from unnest(${byteas(pages.map((page) => hashUrl(page.url)))}::text[]::bytea[], ${pages.map((page) => page.url)}::text[],
      ${pages.map((page) => page.depth)}::integer[]) with ordinality as given (url_hash, url, depth, place)
    where not exists (select 1 from crawl_pages known
      where known.app_id = ${crawl.appId} and known.crawl_id = ${crawl.id} and known.url_hash = given.url_hash)
    order by given.place limit ${room}
    on conflict do nothing`;
  return added.count;
}

/** Sets the priority of pages that are already queued. */
export async function prioritizePages(
  tx: Transaction,
  crawl: Crawl,
  pages: { url: string; priority: number }[],
): Promise<void> {
  if (pages.length === 0) return;
  await tx`
    update crawl_pages set priority = given.priority
    from unnest(${byteas(pages.map((page) => hashUrl(page.url)))}::text[]::bytea[],
      ${pages.map((page) => page.priority)}::smallint[]) as given (url_hash, priority)
    where app_id = ${crawl.appId} and crawl_id = ${crawl.id} and crawl_pages.url_hash = given.url_hash
      and state = 'queued'`;
}

/**
 * Inserts rows that are never fetched: left-out URLs with reasons, and other spellings of pages. Returns how many are
 * new.
 */
export async function insertFinishedPages(
  tx: Transaction,
  crawl: Crawl,
  pages: { url: string; depth: number; state: 'left_out' | 'alias'; reason: string | null }[],
): Promise<number> {
  if (pages.length === 0) return 0;
  const added = await tx`
    insert into crawl_pages (app_id, crawl_id, url_hash, url, depth, state, reason)
    select ${crawl.appId}, ${crawl.id}, given.* from unnest(${byteas(pages.map((page) => hashUrl(page.url)))}::text[]::bytea[],
      ${pages.map((page) => page.url)}::text[], ${pages.map((page) => page.depth)}::integer[],
      ${pages.map((page) => page.state)}::text[], ${pages.map((page) => page.reason)}::text[]) as given
    on conflict do nothing`;
  return added.count;
}

/**
 * Finds finished pages with one of these canonical URLs. Returns canonical URL and text hash of each
 * (`canonical/content`, in hex).
 */
export async function listDuplicatePages(db: Db, crawl: Crawl, canonicalHashes: Buffer[]): Promise<Set<string>> {
  const rows = await db<{ canonicalHash: Buffer; contentHash: Buffer }[]>`
    select canonical_hash, content_hash from crawl_pages where app_id = ${crawl.appId} and crawl_id = ${crawl.id}
      and state = 'done' and canonical_hash = any(${byteas(canonicalHashes)}::text[]::bytea[])`;
  return new Set(rows.map((row) => duplicateKey(row.canonicalHash, row.contentHash)));
}

export function duplicateKey(canonicalHash: Buffer, contentHash: Buffer): string {
  return `${canonicalHash.toString('hex')}/${contentHash.toString('hex')}`;
}

/** Ends the crawl. Keeps the rows of left-out URLs, which are shown to the owner, and deletes all others. */
export async function finishCrawl(tx: Transaction, crawl: Crawl): Promise<void> {
  await tx`update crawls set finished_at = now() where app_id = ${crawl.appId} and id = ${crawl.id}`;
  await tx`delete from crawl_pages where app_id = ${crawl.appId} and crawl_id = ${crawl.id} and state <> 'left_out'`;
  await tx`delete from crawl_hosts where app_id = ${crawl.appId} and crawl_id = ${crawl.id}`;
}

/** The URLs that a crawl left out and the reasons, in the order of discovery. */
export function listLeftOut(
  db: Db,
  appId: string,
  crawlId: string,
  count: number,
): Promise<{ url: string; reason: string }[]> {
  return db<{ url: string; reason: string }[]>`
    select url, reason from crawl_pages
    where app_id = ${appId} and crawl_id = ${crawlId} and state = 'left_out' order by position limit ${count}`;
}

export function listHosts(db: Db, crawl: Crawl): Promise<HostRow[]> {
  return db<HostRow[]>`
    select origin, state, robots from crawl_hosts where app_id = ${crawl.appId} and crawl_id = ${crawl.id}`;
}

export async function insertHost(db: Db, crawl: Crawl, host: HostRow): Promise<void> {
  await db`
    insert into crawl_hosts (app_id, crawl_id, origin, state, robots)
    values (${crawl.appId}, ${crawl.id}, ${host.origin}, ${host.state}, ${host.robots})
    on conflict do nothing`;
}

/** The collection's stored states of these URLs. */
export async function listKnownPages(db: Db, crawl: Crawl, urls: string[]): Promise<Map<string, PageState>> {
  if (crawl.collectionId === null || urls.length === 0) return new Map();
  const rows = await db<(Omit<PageState, 'links'> & { links: string })[]>`
    select url, final_url, canonical, etag, last_modified, content_hash, page_hash, links, boxes
    from crawled_pages
    where app_id = ${crawl.appId} and collection_id = ${crawl.collectionId} and url_hash = any(${byteas(urls.map(hashUrl))}::text[]::bytea[])`;
  return new Map(rows.map((row) => [row.url, { ...row, links: row.links === '' ? [] : row.links.split('\n') }]));
}

/** When the collection's pages were last fetched. */
export async function listFetchTimes(db: Db, crawl: Crawl, urls: string[]): Promise<Map<string, Date>> {
  if (crawl.collectionId === null || urls.length === 0) return new Map();
  const rows = await db<{ url: string; fetchedAt: Date }[]>`
    select url, fetched_at from crawled_pages
    where app_id = ${crawl.appId} and collection_id = ${crawl.collectionId} and url_hash = any(${byteas(urls.map(hashUrl))}::text[]::bytea[])`;
  return new Map(rows.map((row) => [row.url, row.fetchedAt]));
}

export async function savePageStates(tx: Transaction, crawl: Crawl, pages: PageState[]): Promise<void> {
  if (crawl.collectionId === null || pages.length === 0) return;
  await tx`
    insert into crawled_pages (app_id, sandbox_id, collection_id, url_hash, url, final_url, canonical, etag,
      last_modified, content_hash, page_hash, links, boxes, fetched_at)
    select ${crawl.appId}, ${crawl.sandboxId}, ${crawl.collectionId}, given.*, now()
    from unnest(${byteas(pages.map((page) => hashUrl(page.url)))}::text[]::bytea[], ${pages.map((page) => page.url)}::text[],
      ${pages.map((page) => page.finalUrl)}::text[], ${pages.map((page) => page.canonical)}::text[],
      ${pages.map((page) => page.etag)}::text[], ${pages.map((page) => page.lastModified)}::text[],
      ${byteas(pages.map((page) => page.contentHash))}::text[]::bytea[],
      ${byteas(pages.map((page) => page.pageHash))}::text[]::bytea[],
      ${pages.map((page) => page.links.join('\n'))}::text[],
      ${byteas(pages.map((page) => page.boxes))}::text[]::bytea[]) as given
    on conflict (app_id, collection_id, url_hash) do update set final_url = excluded.final_url,
      canonical = excluded.canonical, etag = excluded.etag, last_modified = excluded.last_modified,
      content_hash = excluded.content_hash, page_hash = excluded.page_hash, links = excluded.links, boxes = excluded.boxes,
      fetched_at = excluded.fetched_at`;
}

/** Marks these pages as unchanged. Their rows are not rewritten: links can be long. */
export async function touchPageStates(tx: Transaction, crawl: Crawl, urls: string[]): Promise<void> {
  if (crawl.collectionId === null || urls.length === 0) return;
  await tx`
    update crawled_pages set fetched_at = now() where app_id = ${crawl.appId}
      and collection_id = ${crawl.collectionId} and url_hash = any(${byteas(urls.map(hashUrl))}::text[]::bytea[])`;
}

/** Deletes the states of pages that this crawl, which is ending, neither visited nor left out. */
export async function dropUnvisitedStates(tx: Transaction, crawl: Crawl): Promise<void> {
  if (crawl.collectionId === null) return;
  await tx`
    delete from crawled_pages known where app_id = ${crawl.appId} and collection_id = ${crawl.collectionId}
      and not exists (select 1 from crawl_pages page
        where page.app_id = ${crawl.appId} and page.crawl_id = ${crawl.id} and page.url_hash = known.url_hash
          and (page.state in ('done', 'failed') or page.reason = 'duplicate'))`;
}

/** Deletes the states of a collection's pages that no longer exist. */
export async function dropPageStates(db: Db, crawl: Crawl, urls: string[]): Promise<void> {
  if (crawl.collectionId === null || urls.length === 0) return;
  await db`delete from crawled_pages
    where app_id = ${crawl.appId} and collection_id = ${crawl.collectionId} and url_hash = any(${byteas(urls.map(hashUrl))}::text[]::bytea[])`;
}

/** The number of older crawls of the app that still exist. */
export async function countOlderCrawls(db: Db, appId: string, id: string): Promise<number> {
  const [row] = await db<[{ count: number }]>`
    select count(*) from crawls where app_id = ${appId} and id < ${id} and finished_at is null`;
  return row.count;
}
