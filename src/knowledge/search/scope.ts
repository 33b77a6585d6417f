import type { StemLanguage } from '../../content/terms.ts';
import type { BorrowedMemory } from '../computing/shared.ts';
import { allowedBit, liveBit, sourceOfRow } from './rank.ts';
import { hideRestricted, type Restrictions } from './restricted.ts';
import type { ScopeStatistics } from './score.ts';
import type { AllowedRanges, ScopeSource } from './store.ts';

/**
 * The chunks that a search covers, as rows of one table: the ordinals of each source in turn. `rows` has a bit for each
 * that is live and one for each that the search's filters allow.
 */
export type SearchedChunks = {
  sources: PlacedSource[];
  rows: Uint8Array;
  /** For what this search needs until its end, `rows` included. */
  memory: BorrowedMemory;
  statistics: ScopeStatistics;
};

/** A source whose counts and languages are those of the chunks that the caller sees. */
export type PlacedSource = ScopeSource & {
  /** The row of ordinal 0. */
  base: number;
  /** All of its live chunks, by which caches decide. */
  storedChunks: number;
};

/**
 * Lays out the sources as rows. Without `allowed`, there is no filter. Hidden chunks are left out as if they had been
 * deleted, and sources without another chunk as if they were empty.
 */
export function layOutScope(
  sources: ScopeSource[],
  allowed: AllowedRanges[] | undefined,
  restrictions: Restrictions | undefined,
  memory: BorrowedMemory,
): SearchedChunks {
  let size = 0;
  const placed = sources.map((source) => {
    const base = size - source.firstOrdinal;
    size += source.nextOrdinal - source.firstOrdinal;
    return { ...source, base, storedChunks: source.chunkCount };
  });
  const isWhole =
    allowed === undefined && restrictions === undefined && sources.every(({ deadFirst }) => deadFirst.length === 0);
  // Other threads read it.
  const rows = isWhole ? allRows(size) : memory.take(size).fill(allowed === undefined ? liveBit | allowedBit : liveBit);
  const baseOf = new Map(placed.map((source) => [source.sourceId, source.base]));
  for (const { sourceId, ranges } of allowed ?? []) {
    const base = baseOf.get(sourceId) ?? 0;
    for (let at = 0; at < ranges.length; at += 8) {
      const first = base + ranges.readInt32BE(at);
      rows.fill(liveBit | allowedBit, first, first + ranges.readInt32BE(at + 4));
    }
  }
  for (const source of placed)
    for (const [i, first] of source.deadFirst.entries()) {
      const from = Math.max(0, source.base + first);
      rows.fill(0, from, Math.max(from, source.base + first + (source.deadCount[i] ?? 0)));
    }
  const seen = restrictions
    ? placed
        .map((source) => ({ ...source, ...hideRestricted(restrictions, source, source.base, rows) }))
        .filter((source) => source.chunkCount > 0)
    : placed;
  const chunks = seen.reduce((sum, source) => sum + source.chunkCount, 0);
  const words = seen.reduce((sum, source) => sum + source.wordCount, 0);
  const hasDead = seen.some((source) => source.deadFirst.length > 0 || source.chunkCount < source.storedChunks);
  return {
    sources: seen,
    rows,
    memory,
    statistics: { chunks, averageLength: chunks === 0 ? 0 : words / chunks, hasDead },
  };
}

let whole: Uint8Array = new Uint8Array(0);

/** Rows that are all live and allowed, in memory that searches share: nothing may change them. */
function allRows(size: number): Uint8Array {
  if (whole.length < size) whole = new Uint8Array(new SharedArrayBuffer(size)).fill(liveBit | allowedBit);
  return whole.subarray(0, size);
}

/** The languages of the scope's texts. */
export function languagesOf({ sources }: Pick<SearchedChunks, 'sources'>): StemLanguage[] {
  return [...new Set(sources.flatMap((source) => source.languages))].sort();
}

/** The source and ordinal of a row. */
export function placeOfRow(scope: SearchedChunks, row: number): { sourceId: string; ordinal: number } {
  const source = sourceOfRow(scope.sources, row);
  return { sourceId: source.sourceId, ordinal: row - source.base };
}
