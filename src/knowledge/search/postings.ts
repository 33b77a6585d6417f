import { findInBundle } from '../../content/postings.ts';
import type { Db, Transaction } from '../../db/database.ts';
import { type PackedColumns, packPostings } from '../computing/columns.ts';
import type { ComputingThreads } from '../computing/threads.ts';
import { type Cache, copyBytes } from '../index/cache.ts';
import type { SearchedChunks } from './scope.ts';
import { copyPostings, listBundles, listPostings } from './store.ts';

/** A cached value: unpacked postings (null: the segment lacks the term) or a bundle. */
export type IndexCache = Cache<PackedColumns[] | Buffer | null>;

/** By segment and term; null if the segment lacks the term. */
export type LoadedPostings = Map<string, PackedColumns[] | null>;
export type Bundles = Map<string, Buffer>;

/** Returns a function that loads the postings of terms, with one query for those that are not cached. */
export function createPostingsLoader(
  tx: Transaction,
  appId: string,
  { rows: { length: scopeSize }, memory }: SearchedChunks,
  cache: IndexCache,
  threads: ComputingThreads,
) {
  /** Segments are numbered by each database, and a process may serve apps of several. */
  const cacheKey = (key: string) => `${appId}/${key}`;

  return async function load(wanted: { segment: number; term: string }[]): Promise<LoadedPostings> {
    const found: LoadedPostings = new Map();
    const missing: typeof wanted = [];
    for (const one of wanted) {
      const key = postingsKey(one.segment, one.term);
      const known = cache.get(cacheKey(key));
      if (known === undefined || Buffer.isBuffer(known)) missing.push(one);
      else found.set(key, known);
    }
    const rows = threads.isLarge(scopeSize)
      ? await copyPostings(tx, appId, missing, memory)
      : await listPostings(tx, appId, missing);
    const packed = rows.map(({ postings }) => postings);
    const size = packed.reduce((sum, { length }) => sum + length, 0);
    const unpacked = await threads.run(appId, size, 'unpackPostings', packed);
    for (const [i, row] of rows.entries()) found.set(postingsKey(row.segment, row.term), unpacked[i] ?? null);
    for (const one of missing) {
      const key = postingsKey(one.segment, one.term);
      const columns = found.get(key) ?? null;
      cache.set(cacheKey(key), columns, ...(columns ?? []).map(({ buffer }) => buffer));
    }
    return found;
  };
}

export async function loadBundles(db: Db, appId: string, scope: SearchedChunks, cache: IndexCache): Promise<Bundles> {
  const bundles: Bundles = new Map();
  const missing: { sourceId: string; firstOrdinal: number }[] = [];
  for (const source of scope.sources)
    for (const firstOrdinal of source.bundles) {
      const key = bundleKey(source.sourceId, firstOrdinal);
      const known = cache.get(key);
      if (Buffer.isBuffer(known)) bundles.set(key, known);
      else missing.push({ sourceId: source.sourceId, firstOrdinal });
    }
  for (const row of await listBundles(db, appId, missing)) {
    const key = bundleKey(row.sourceId, row.firstOrdinal);
    bundles.set(key, row.content);
    const content = copyBytes(row.content);
    cache.set(key, content, content);
  }
  return bundles;
}

export function bundleColumns(bundle: Buffer | undefined, term: string): PackedColumns[] | undefined {
  const entry = bundle && findInBundle(bundle, term);
  return entry && packPostings(entry.postings);
}

export function postingsKey(segment: number, term: string): string {
  return `${segment}/${term}`;
}

export function bundleKey(sourceId: string, firstOrdinal: number): string {
  return `${sourceId}/${firstOrdinal}`;
}
