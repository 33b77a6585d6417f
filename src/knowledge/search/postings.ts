import { findInBundle } from '../../content/postings.ts';
import type { Db, Transaction } from '../../db/database.ts';
import {
  allocateLengths,
  blocksIn,
  type ChunkLengths,
  type PackedColumns,
  packPostings,
  withLengths,
} from '../computing/columns.ts';
import type { ComputingThreads } from '../computing/threads.ts';
import { type Cache, copyBytes } from '../index/cache.ts';
import type { PlacedSource, SearchedChunks } from './scope.ts';
import { copyPostings, listBundles, listPostings } from './store.ts';

export type IndexCache = {
  /** Unpacked postings; null if the segment lacks the term. */
  postings: Cache<PackedColumns[] | null>;
  bundles: Cache<Buffer>;
  /** The lengths of the chunks of large sources, by block of ordinals. */
  lengths: Cache<SharedArrayBuffer>;
};

/** By segment and term; null if the segment lacks the term. */
export type LoadedPostings = Map<string, PackedColumns[] | null>;
export type Bundles = Map<string, Buffer>;

/** Returns a function that loads the postings of terms, with one query for those that are not cached. */
export function createPostingsLoader(
  tx: Transaction,
  appId: string,
  { sources, rows: { length: scopeSize }, memory }: SearchedChunks,
  cache: IndexCache,
  threads: ComputingThreads,
) {
  /** Segments are numbered by each database, and a process may serve apps of several. */
  const cacheKey = (key: string) => `${appId}/${key}`;

  /** What postings of these segments share, for each segment of a large source. */
  function findLengths(segments: ReadonlySet<number>): Map<number, ChunkLengths> {
    const found = new Map<number, ChunkLengths>();
    for (const source of sources) {
      const ofSource = source.segments.filter((segment) => segments.has(segment));
      if (ofSource.length === 0 || !threads.isLarge(source.storedChunks)) continue;
      const lengths = lengthsOf(source, cache.lengths);
      for (const segment of ofSource) found.set(segment, lengths);
    }
    return found;
  }

  return async function load(wanted: { segment: number; term: string }[]): Promise<LoadedPostings> {
    const found: LoadedPostings = new Map();
    const missing: typeof wanted = [];
    for (const one of wanted) {
      const key = postingsKey(one.segment, one.term);
      const known = cache.postings.get(cacheKey(key));
      if (known === undefined) missing.push(one);
      else found.set(key, known);
    }
    const rows = threads.isLarge(scopeSize)
      ? await copyPostings(tx, appId, missing, memory)
      : await listPostings(tx, appId, missing);
    const lengths = findLengths(new Set(rows.map(({ segment }) => segment)));
    const packed = rows.map(({ segment, postings }) => ({ bytes: postings, lengths: lengths.get(segment) }));
    const size = packed.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const unpacked = await threads.run(appId, size, 'unpackPostings', packed);
    for (const [i, { segment, term }] of rows.entries()) {
      const known = lengths.get(segment);
      // A thread returns other objects for the same memory, which the next message would name as often.
      const columns = known ? (unpacked[i] ?? []).map((one) => withLengths(one, known)) : (unpacked[i] ?? null);
      found.set(postingsKey(segment, term), columns);
    }
    for (const one of missing) {
      const key = postingsKey(one.segment, one.term);
      const columns = found.get(key) ?? null;
      cache.postings.set(cacheKey(key), columns, ...(columns ?? []).map(({ buffer }) => buffer));
    }
    return found;
  };
}

/**
 * The lengths of a source's chunks. What is missing is empty: each term that is decoded adds those of its chunks, and
 * its postings keep the memory that it has added them to.
 */
function lengthsOf({ sourceId, firstOrdinal, nextOrdinal }: PlacedSource, cache: IndexCache['lengths']): ChunkLengths {
  const starts = blocksIn(firstOrdinal, nextOrdinal);
  const blocks = starts.map((start) => {
    const key = `${sourceId}/${start}`;
    const block = cache.get(key) ?? allocateLengths();
    cache.set(key, block, block);
    return block;
  });
  return { first: starts[0] ?? 0, blocks };
}

export async function loadBundles(db: Db, appId: string, scope: SearchedChunks, cache: IndexCache): Promise<Bundles> {
  const bundles: Bundles = new Map();
  const missing: { sourceId: string; firstOrdinal: number }[] = [];
  for (const source of scope.sources)
    for (const firstOrdinal of source.bundles) {
      const key = bundleKey(source.sourceId, firstOrdinal);
      const known = cache.bundles.get(key);
      if (known) bundles.set(key, known);
      else missing.push({ sourceId: source.sourceId, firstOrdinal });
    }
  for (const row of await listBundles(db, appId, missing)) {
    const key = bundleKey(row.sourceId, row.firstOrdinal);
    bundles.set(key, row.content);
    const content = copyBytes(row.content);
    cache.bundles.set(key, content, content);
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
