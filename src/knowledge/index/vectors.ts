import { codeBits, packedBytes } from '../../content/embed/codes.ts';
import type { Embedder } from '../../content/embed/embedder.ts';
import type { ScannedBytes } from '../../content/wide-scan.ts';
import type { Transaction } from '../../db/database.ts';
import type { ComparedCodes, RowVectors } from '../computing/near.ts';
import { type BorrowedMemory, withRoomFor } from '../computing/shared.ts';
import type { ComputingThreads } from '../computing/threads.ts';
import { liveBit, type RankedColumns, sourceOfRow } from '../search/rank.ts';
import type { PlacedSource, SearchedChunks } from '../search/scope.ts';
import { readCodes, readVectorsAt } from '../search/store.ts';
import { type Cache, copyBytes, inTurn } from './cache.ts';
import { addSlab, type CachedVectors, openVectorsOf, slabSize, type VectorsOfSource } from './cached-vectors.ts';

/** All sign codes of one source and model, in the order in which they were stored. Append-only. */
type CodeTable = {
  version: number;
  count: number;
  ordinals: Int32Array;
  codes: ScannedBytes;
};

/** Codes of whole sources, and packed vectors, which never change: reading 200 of them costs more than the rest. */
export type VectorCache = CachedVectors & { codes: Cache<CodeTable> };

/**
 * Ranks the scope's allowed chunks with vectors of this model by cosine; at most `count`, best first. Three steps, each
 * with fewer chunks: those with the smallest Hamming distances, the best of these by an estimate, and the order of those
 * by their exact cosine, which reads their vectors.
 */
export async function rankByVector(
  tx: Transaction,
  appId: string,
  scope: SearchedChunks,
  embedder: Pick<Embedder, 'model' | 'dimensions'>,
  query: Float32Array,
  count: number,
  minSimilarity: number,
  { cache, threads }: { cache: VectorCache; threads: ComputingThreads },
): Promise<RankedColumns> {
  const codeBytes = codeBits(embedder.dimensions) / 8;
  const tables: ComparedCodes[] = [];
  for (const source of scope.sources) {
    if (source.vectorVersion === 0) continue;
    const { base, firstOrdinal, nextOrdinal } = source;
    const table = await loadTable(tx, appId, source, embedder.model, codeBytes, cache.codes);
    tables.push({ base, firstOrdinal, nextOrdinal, count: table.count, ordinals: table.ordinals, codes: table.codes });
  }
  const { rows } = scope;
  const near = await threads.run(appId, rows.length, 'findNear', { tables, rows, query, count });
  const asCopy = threads.isLarge(rows.length);
  const memory = threads.borrow();
  try {
    const vectors = await loadVectors(tx, appId, embedder, scope, near, { cache, asCopy, memory });
    const input = { vectors, query, minSimilarity, count };
    return await threads.run(appId, rows.length, 'rankByCosine', input);
  } finally {
    memory.giveBack();
  }
}

/**
 * A source is read as a whole if at most this many vectors remain for each one that is missing; otherwise, its next
 * searches would wait for the rest, a few at a time.
 */
const readAhead = 8;

type VectorPlace = { row: number; sourceId: string; ordinal: number };

/**
 * The packed vectors of these rows, unordered: the cached ones plus the others from the database. Those of a source whose
 * vectors do not all fit into the cache are only kept if they are asked for again: most are not, and would fill it.
 */
async function loadVectors(
  tx: Transaction,
  appId: string,
  { model, dimensions }: Pick<Embedder, 'model' | 'dimensions'>,
  scope: SearchedChunks,
  near: Int32Array,
  { cache, asCopy, memory }: { cache: CachedVectors; asCopy: boolean; memory: BorrowedMemory },
): Promise<RowVectors> {
  const vectorBytes = packedBytes(dimensions);
  const rows = new Int32Array(near.length);
  // In one piece that other threads can read.
  const content = memory.take(near.length * vectorBytes);
  let count = 0;
  const add = (row: number, vector: Uint8Array) => {
    rows[count] = row;
    content.set(vector, count * vectorBytes);
    count += 1;
  };
  const opened = new Map<string, VectorsOfSource>();
  const open = (source: PlacedSource): VectorsOfSource => {
    const known = opened.get(source.sourceId) ?? openVectorsOf(cache, `${source.sourceId}/${model}`, source);
    opened.set(source.sourceId, known);
    return known;
  };
  const missing = new Map<number, VectorPlace>();
  for (const row of near) {
    const source = sourceOfRow(scope.sources, row);
    const ordinal = row - source.base;
    const vector = open(source).find(ordinal);
    if (vector) add(row, vector);
    else missing.set(row, { row, sourceId: source.sourceId, ordinal });
  }
  if (missing.size > 0) {
    const { kept, passing } = divideMissing([...missing.values()], scope, (source, { ordinal }) => {
      const allFit = source.storedChunks * vectorBytes <= cache.slabs.bytesMax;
      return allFit || open(source).wasAskedFor(ordinal);
    });
    const ordinals = [...kept, ...passing];
    await readVectorsAt(tx, appId, model, { ordinals, asCopy, perRow: slabSize }, (at, bytes) => {
      const places = at.map((place) => ordinals[place] as VectorPlace);
      // At most one row has some of both.
      const isKept = at.some((place) => place < kept.length);
      const vectors = isKept ? copyBytes(bytes) : bytes;
      if (isKept)
        addSlab(
          cache,
          places.map(({ row, ordinal }) => ({ source: open(sourceOfRow(scope.sources, row)), ordinal })),
          vectors,
        );
      for (const [i, { row }] of places.entries())
        if (missing.has(row)) add(row, vectors.subarray(i * vectorBytes, (i + 1) * vectorBytes));
    });
  }
  return { rows: rows.subarray(0, count), content };
}

/** Which vectors to read and to keep, and which only for this search. */
function divideMissing(
  missing: readonly VectorPlace[],
  scope: SearchedChunks,
  isKept: (source: PlacedSource, place: VectorPlace) => boolean,
): { kept: VectorPlace[]; passing: VectorPlace[] } {
  const kept: VectorPlace[] = [];
  const passing: VectorPlace[] = [];
  for (const source of scope.sources) {
    const ofSource = missing.filter((place) => place.sourceId === source.sourceId);
    if (ofSource.length * readAhead >= source.chunkCount) kept.push(...listPlaces(scope, source));
    else for (const place of ofSource) (isKept(source, place) ? kept : passing).push(place);
  }
  return { kept, passing };
}

/** The live chunks of a source. */
function listPlaces(
  { rows }: SearchedChunks,
  { sourceId, base, firstOrdinal, nextOrdinal }: SearchedChunks['sources'][number],
): VectorPlace[] {
  const ordinals = Array.from({ length: nextOrdinal - firstOrdinal }, (_ordinal, i) => firstOrdinal + i);
  return ordinals
    .map((ordinal) => ({ row: base + ordinal, sourceId, ordinal }))
    .filter(({ row }) => ((rows[row] ?? 0) & liveBit) !== 0);
}

/** A table may contain this many codes of deleted chunks, plus the number of live ones. */
const staleCodesMax = 10_000;

/** The source's codes as of this snapshot or later: the cached ones plus newer ones from the database. */
async function loadTable(
  tx: Transaction,
  appId: string,
  source: { sourceId: string; vectorVersion: number; servingVersion: number; storedChunks: number },
  model: string,
  codeBytes: number,
  cache: Cache<CodeTable>,
): Promise<CodeTable> {
  const key = `${source.sourceId}/${source.servingVersion}/${model}`;
  // One search at a time adds codes behind those that the others read.
  return inTurn(key, async () => {
    const cached = cache.get(key);
    const known = cached && cached.count <= source.storedChunks * 2 + staleCodesMax ? cached : undefined;
    if (known && known.version >= source.vectorVersion) return known;
    let table = known ?? emptyTable();
    await readCodes(tx, appId, source.sourceId, { model, version: table.version }, (run) => {
      if (table.count + run.chunkCount > table.ordinals.length)
        table = grown(table, Math.max(run.chunkCount, source.storedChunks - table.count), codeBytes);
      table.codes.bytes.set(run.content, table.count * codeBytes);
      for (let i = 0; i < run.chunkCount; i++) table.ordinals[table.count + i] = run.firstOrdinal + i;
      table = { ...table, count: table.count + run.chunkCount };
    });
    table = { ...table, version: source.vectorVersion };
    cache.set(key, table, table.codes.bytes, table.ordinals);
    return table;
  });
}

function emptyTable(): CodeTable {
  return { version: 0, count: 0, ordinals: new Int32Array(0), codes: { bytes: new Uint8Array(0) } };
}

function grown(table: CodeTable, more: number, codeBytes: number): CodeTable {
  const capacity = Math.max(256, Math.ceil((table.count + more) * 1.1));
  const ordinals = new Int32Array(new SharedArrayBuffer(capacity * 4));
  ordinals.set(table.ordinals.subarray(0, table.count));
  return { ...table, ordinals, codes: withRoomFor(table.codes, capacity * codeBytes) };
}
