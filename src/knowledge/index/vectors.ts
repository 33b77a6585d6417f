import { codeBits, cosineEstimator, packedCosine, signCode } from '../../content/embed/codes.ts';
import type { Embedder } from '../../content/embed/embedder.ts';
import { hammingDistances } from '../../content/embed/hamming.ts';
import type { Transaction } from '../../db/database.ts';
import { allowedBit, liveBit, nearestPlaces, type Ranked } from '../search/rank.ts';
import { placeOfRow, type SearchedChunks } from '../search/scope.ts';
import { listVectorsAt, readCodes } from '../search/store.ts';
import { type Cache, copyBytes } from './cache.ts';

/** All sign codes of one source and model, in the order in which they were stored. Append-only. */
type CodeTable = {
  version: number;
  count: number;
  ordinals: Int32Array;
  codes: Uint32Array;
};

/** Codes of whole sources, and packed vectors, which never change: reading 200 of them costs more than the rest. */
export type VectorCache = { codes: Cache<CodeTable>; vectors: Cache<Buffer> };

/**
 * Three steps, each with fewer chunks: those with the smallest Hamming distances, the best of these by an estimate, and
 * the order of those by their exact cosine, which reads their vectors. Up to 10,000 chunks, these are the numbers of
 * estimates and of cosines; beyond that, the first grows with the square root of the number of chunks and the second
 * with its fourth root. `bench/search.ts` measures how many of the exact top ten are found.
 */
const estimatedMin = 2_000;
const comparedMin = 200;
const chunksOfMin = 10_000;

/** Ranks the scope's allowed chunks with vectors of this model by cosine; at most `count`, best first. */
export async function rankByVector(
  tx: Transaction,
  appId: string,
  scope: SearchedChunks,
  embedder: Pick<Embedder, 'model' | 'dimensions'>,
  query: Float32Array,
  count: number,
  minSimilarity: number,
  cache: VectorCache,
): Promise<Ranked[]> {
  const words = codeBits(embedder.dimensions) / 32;
  /** Each table with the place of its first allowed chunk among all of them. */
  const tables: { source: SearchedChunks['sources'][number]; table: CodeTable; first: number }[] = [];
  for (const source of scope.sources) {
    if (source.vectorVersion === 0) continue;
    const table = await loadTable(tx, appId, source, embedder.model, words, cache.codes);
    tables.push({ source, table, first: 0 });
  }
  const total = tables.reduce((sum, { table }) => sum + table.count, 0);
  const distances = new Uint16Array(total);
  const rows = new Int32Array(total);
  /** The position of each allowed chunk in its table. */
  const places = new Int32Array(total);
  const code = signCode(query);
  let found = 0;
  for (const entry of tables) {
    const { source, table } = entry;
    const start = found;
    entry.first = start;
    hammingDistances(code, table.codes, table.count, distances, start);
    for (let i = 0; i < table.count; i++) {
      const ordinal = table.ordinals[i] as number;
      // The table may contain chunks that are newer than this snapshot, and deleted ones.
      if (ordinal < source.firstOrdinal || ordinal >= source.nextOrdinal) continue;
      const row = source.base + ordinal;
      if (((scope.rows[row] ?? 0) & allowedBit) === 0) continue;
      distances[found] = distances[start + i] as number;
      rows[found] = row;
      places[found] = i;
      found += 1;
    }
  }
  const growth = Math.sqrt(Math.max(1, found / chunksOfMin));
  const compared = Math.max(count, Math.ceil(comparedMin * Math.sqrt(growth)));
  const estimated = Math.max(compared, Math.ceil(estimatedMin * growth));
  const near = nearestPlaces(distances.subarray(0, found), words * 32, estimated);
  const nearest = keepBest(near, compared, query, (place) => {
    let low = 0;
    for (let high = tables.length - 1; low < high; ) {
      const middle = (low + high + 1) >>> 1;
      if ((tables[middle]?.first ?? 0) <= place) low = middle;
      else high = middle - 1;
    }
    return { codes: tables[low]?.table.codes as Uint32Array, place: places[place] as number };
  });
  const wanted = nearest.map((place) => rows[place] as number).map((row) => ({ row, ...placeOfRow(scope, row) }));
  const vectors = await loadVectors(tx, appId, embedder.model, scope, wanted, cache.vectors);
  return vectors
    .map(({ row, content }) => ({ row, score: packedCosine(query, content) }))
    .filter(({ score }) => score >= minSimilarity)
    .sort((a, b) => b.score - a.score || a.row - b.row)
    .slice(0, count);
}

/** The `count` chunks that are the most similar by the estimate. */
function keepBest(
  near: number[],
  count: number,
  query: Float32Array,
  codeOf: (place: number) => { codes: Uint32Array; place: number },
): number[] {
  if (near.length <= count) return near;
  const estimate = cosineEstimator(query);
  const estimates = Float32Array.from(near, (one) => {
    const { codes, place } = codeOf(one);
    return estimate(codes, place);
  });
  const order = near.map((_one, i) => i).sort((a, b) => (estimates[b] as number) - (estimates[a] as number) || a - b);
  return order.slice(0, count).map((i) => near[i] as number);
}

/**
 * A source is read as a whole if at most this many vectors remain for each one that is missing; otherwise, its next
 * searches would wait for the rest, a few at a time.
 */
const readAhead = 8;

type VectorPlace = { row: number; sourceId: string; ordinal: number };

/** The packed vectors of these rows, unordered: the cached ones plus the others from the database. */
async function loadVectors(
  tx: Transaction,
  appId: string,
  model: string,
  scope: SearchedChunks,
  places: readonly VectorPlace[],
  cache: Cache<Buffer>,
): Promise<{ row: number; content: Buffer }[]> {
  const keyOf = (place: { sourceId: string; ordinal: number }) => `${place.sourceId}/${place.ordinal}/${model}`;
  const found: { row: number; content: Buffer }[] = [];
  const missing = new Map<string, VectorPlace>();
  for (const place of places) {
    const content = cache.get(keyOf(place));
    if (content) found.push({ row: place.row, content });
    else missing.set(keyOf(place), place);
  }
  if (missing.size === 0) return found;
  const wanted = scope.sources.flatMap((source) => {
    const ofSource = [...missing.values()].filter((place) => place.sourceId === source.sourceId);
    return ofSource.length * readAhead < source.chunkCount ? ofSource : listPlaces(scope, source);
  });
  for (const row of await listVectorsAt(tx, appId, model, wanted)) {
    const key = keyOf(row);
    const place = missing.get(key);
    if (place) found.push({ row: place.row, content: row.content });
    const content = copyBytes(row.content);
    cache.set(key, content, content);
  }
  return found;
}

/** The live chunks of a source. */
function listPlaces(
  { rows }: SearchedChunks,
  { sourceId, base, firstOrdinal, nextOrdinal }: SearchedChunks['sources'][number],
) {
  const ordinals = Array.from({ length: nextOrdinal - firstOrdinal }, (_ordinal, i) => firstOrdinal + i);
  return ordinals
    .filter((ordinal) => ((rows[base + ordinal] ?? 0) & liveBit) !== 0)
    .map((ordinal) => ({ sourceId, ordinal }));
}

/** A table may contain this many codes of deleted chunks, plus the number of live ones. */
const staleCodesMax = 10_000;

/** The source's codes as of this snapshot or later: the cached ones plus newer ones from the database. */
async function loadTable(
  tx: Transaction,
  appId: string,
  source: { sourceId: string; vectorVersion: number; servingVersion: number; storedChunks: number },
  model: string,
  words: number,
  cache: Cache<CodeTable>,
): Promise<CodeTable> {
  const key = `${source.sourceId}/${source.servingVersion}/${model}`;
  const cached = cache.get(key);
  const known = cached && cached.count <= source.storedChunks * 2 + staleCodesMax ? cached : undefined;
  if (known && known.version >= source.vectorVersion) return known;
  let table = known ?? emptyTable();
  // The first addition copies: concurrent searches keep reading the old table.
  let shared = true;
  for await (const runs of readCodes(tx, appId, source.sourceId, model, table.version))
    for (const run of runs) {
      if (shared || table.count + run.chunkCount > table.ordinals.length)
        table = grown(table, Math.max(run.chunkCount, source.storedChunks - table.count), words);
      shared = false;
      // Copied as bytes: the database's buffers are not aligned to words.
      new Uint8Array(table.codes.buffer, table.count * words * 4, run.content.length).set(run.content);
      for (let i = 0; i < run.chunkCount; i++) table.ordinals[table.count + i] = run.firstOrdinal + i;
      table.count += run.chunkCount;
    }
  table = { ...table, version: source.vectorVersion };
  if ((cache.get(key)?.version ?? -1) < table.version || known === undefined)
    cache.set(key, table, table.codes, table.ordinals);
  return table;
}

function emptyTable(): CodeTable {
  return { version: 0, count: 0, ordinals: new Int32Array(0), codes: new Uint32Array(0) };
}

function grown(table: CodeTable, more: number, words: number): CodeTable {
  const capacity = Math.max(256, Math.ceil((table.count + more) * 1.1));
  const ordinals = new Int32Array(capacity);
  const codes = new Uint32Array(capacity * words);
  ordinals.set(table.ordinals.subarray(0, table.count));
  codes.set(table.codes.subarray(0, table.count * words));
  return { version: table.version, count: table.count, ordinals, codes };
}
