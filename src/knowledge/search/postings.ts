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
import type { BorrowedMemory } from '../computing/shared.ts';
import type { ComputingThreads } from '../computing/threads.ts';
import { type Cache, copyBytes } from '../index/cache.ts';
import type { PlacedSource, SearchedChunks } from './scope.ts';
import { copyPostings, listBundles, listPostings } from './store.ts';

export type IndexCache = {
  /** Decoded postings of a term, for each source. */
  postings: Cache<TermColumns>;
  bundles: Cache<Buffer>;
  /** The lengths of the chunks of large sources, by block of ordinals. */
  lengths: Cache<SharedArrayBuffer>;
};

/** The postings of a term in segments of a source: those of `segments[i]` end before `columns[ends[i]]`. */
type TermColumns = { segments: readonly number[]; ends: number[]; columns: PackedColumns[] };

type SourceTerm = { source: PlacedSource; term: string };

/** By source and term: the postings of all segments. */
export type LoadedPostings = Map<string, PackedColumns[]>;
export type Bundles = Map<string, Buffer>;

/** Returns a function that loads the postings of terms, with one query for those that are not cached. */
export function createPostingsLoader(
  tx: Transaction,
  appId: string,
  { rows: { length: scopeSize } }: SearchedChunks,
  cache: IndexCache,
  threads: ComputingThreads,
) {
  /** Segments are numbered by each database, and a process may serve apps of several. */
  const cacheKey = (key: string) => `${appId}/${key}`;

  async function readMissing(missing: readonly MissingTerm[]): Promise<void> {
    // Not the search's own memory: once they are decoded, another search may have it.
    const memory = threads.borrow();
    try {
      await read(missing, memory);
    } finally {
      memory.giveBack();
    }
  }

  async function read(missing: readonly MissingTerm[], memory: BorrowedMemory): Promise<void> {
    const wanted = missing.flatMap(({ term, unread }) => unread.map((segment) => ({ segment, term })));
    const rows = threads.isLarge(scopeSize)
      ? await copyPostings(tx, appId, wanted, memory)
      : await listPostings(tx, appId, wanted);
    const bytesOf = new Map(rows.map(({ segment, term, postings }) => [`${segment}/${term}`, postings]));
    const lengths = new Map<PlacedSource, ChunkLengths>();
    const stored = missing.map(({ source, term, unread }) => {
      const segments = unread.filter((segment) => bytesOf.has(`${segment}/${term}`));
      if (segments.length > 0 && threads.isLarge(source.storedChunks) && !lengths.has(source))
        lengths.set(source, lengthsOf(source, cache.lengths));
      return { segments, parts: segments.map((segment) => bytesOf.get(`${segment}/${term}`) as Uint8Array) };
    });
    const input = stored.map(({ parts }, i) => ({ parts, lengths: lengths.get(missing[i]?.source as PlacedSource) }));
    const size = rows.reduce((sum, { postings }) => sum + postings.length, 0);
    const unpacked = await threads.run(appId, size, 'unpackPostings', input);
    for (const [i, one] of missing.entries()) {
      const known = input[i]?.lengths;
      for (const [j, segment] of (stored[i]?.segments ?? []).entries()) {
        const columns = unpacked[i]?.[j] ?? [];
        // A thread returns other objects for the same memory, which the next message would name as often.
        one.columns.set(segment, known ? columns.map((each) => withLengths(each, known)) : columns);
      }
    }
  }

  return async function load(wanted: readonly SourceTerm[]): Promise<LoadedPostings> {
    const found: LoadedPostings = new Map();
    const missing: MissingTerm[] = [];
    for (const { source, term } of wanted) {
      const key = termKey(source, term);
      if (found.has(key) || source.segments.length === 0) continue;
      const cached = cache.postings.get(cacheKey(key));
      const isWhole = cached !== undefined && isSame(cached.segments, source.segments);
      found.set(key, isWhole ? cached.columns : []);
      if (!isWhole) missing.push(missingOf(source, term, cached));
    }
    if (missing.length === 0) return found;
    await readMissing(missing);
    for (const { source, term, columns: bySegment } of missing) {
      const key = termKey(source, term);
      const columns: PackedColumns[] = [];
      const ends = source.segments.map((segment) => columns.push(...(bySegment.get(segment) ?? [])));
      found.set(key, columns);
      const buffers = columns.map(({ buffer }) => buffer);
      cache.postings.set(cacheKey(key), { segments: source.segments, ends, columns }, ...buffers);
    }
    return found;
  };
}

/** A term of a source with its postings by segment, and the segments whose postings are not cached. */
type MissingTerm = SourceTerm & { columns: Map<number, PackedColumns[]>; unread: number[] };

/** What is cached of other segments stays, because segments never change. */
function missingOf(source: PlacedSource, term: string, cached: TermColumns | undefined): MissingTerm {
  const columns = new Map<number, PackedColumns[]>();
  for (const [i, segment] of (cached?.segments ?? []).entries())
    columns.set(segment, cached?.columns.slice(cached.ends[i - 1] ?? 0, cached.ends[i]) ?? []);
  return { source, term, columns, unread: source.segments.filter((segment) => !columns.has(segment)) };
}

function isSame(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((segment, i) => segment === other[i]);
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

export function termKey({ sourceId }: { sourceId: string }, term: string): string {
  return `${sourceId}/${term}`;
}

export function bundleKey(sourceId: string, firstOrdinal: number): string {
  return `${sourceId}/${firstOrdinal}`;
}
