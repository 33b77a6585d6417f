import { unpackWord } from '../../content/learn/codes.ts';
import type { Transaction } from '../../db/database.ts';
import {
  type CodeRun,
  type ComparedSource,
  emptyCodes,
  type ModelCodes,
  signedBytes,
  withRoomUpTo,
} from '../computing/similarity.ts';
import type { ComputingThreads } from '../computing/threads.ts';
import { type Cache, inTurn } from '../index/cache.ts';
import type { PlacedSource, SearchedChunks } from './scope.ts';
import { listModelFrequencies, listModelVectors, type ModelTerm, readModelCodes } from './store.ts';
import { termsIn, type WantedTerm } from './wanted.ts';

type WantedWord = { source: PlacedSource; term: string };

export type ModelCache = {
  /** The vectors of words that queries had; null if the model does not know the word. */
  words: Cache<Float32Array | null>;
  /** How often a chunk has a word on average. Feedback asks for every word of a passage, and needs no vectors. */
  frequencies: Cache<number | null>;
  codes: Cache<ModelCodes>;
};

/** A scope's models, as one search reads them. */
export type Models = Awaited<ReturnType<typeof openModels>>;

export async function openModels(
  tx: Transaction,
  appId: string,
  scope: SearchedChunks,
  cache: ModelCache,
  threads: ComputingThreads,
) {
  const sources = scope.sources.filter((source) => source.modelVersion > 0);

  return {
    sources,
    /** The average number of occurrences per chunk of the words that the models know. */
    readFrequencies: (wanted: WantedWord[]) =>
      readWords(cache.frequencies, wanted, async (missing) => {
        const rows = await listModelFrequencies(tx, appId, missing);
        return rows.map((row) => ({ ...row, value: row.frequency }));
      }),

    /** The direction of a query in each source's model; none if the model knows none of its words. */
    async directQuery(wanted: readonly WantedTerm[]): Promise<Map<string, Float32Array>> {
      const pairs = sources.flatMap((source) =>
        wanted.flatMap((item) =>
          // A prefix stands for many words, which need not belong together.
          item.isPrefix ? [] : termsIn(source.languages, item).map((term) => ({ source, term, count: item.count })),
        ),
      );
      const vectors = await readWords(cache.words, pairs, async (missing) => {
        const rows = await listModelVectors(tx, appId, missing);
        return rows.map((row) => ({ ...row, value: unpackWord(row.vector) }));
      });
      const directions = new Map<string, Float32Array>();
      for (const { source, term, count } of pairs) {
        const vector = vectors.get(wordKey(source, term));
        if (!vector) continue;
        const sum = directions.get(source.sourceId) ?? new Float32Array(source.modelDimensions);
        for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] as number) + count * (vector[i] as number);
        directions.set(source.sourceId, sum);
      }
      for (const direction of directions.values()) normalise(direction);
      return directions;
    },

    /** Moves a query's directions towards chunks on the same subject, each by its weight. */
    async moveTowards(
      directions: ReadonlyMap<string, Float32Array>,
      chunks: readonly { sourceId: string; ordinal: number; weight: number }[],
    ): Promise<Map<string, Float32Array>> {
      const moved = new Map([...directions].map(([id, direction]) => [id, direction.slice()]));
      for (const { sourceId, ordinal, weight } of chunks) {
        const source = sources.find((one) => one.sourceId === sourceId);
        const direction = moved.get(sourceId);
        if (!source || !direction) continue;
        const codes = await loadCodes(tx, appId, source, cache.codes, threads);
        const at = ordinal - codes.firstOrdinal;
        const inverse = codes.inverses[at] ?? 0;
        const directions = signedBytes(codes);
        for (let i = 0; i < direction.length; i++)
          direction[i] = (direction[i] as number) + weight * inverse * (directions[at * direction.length + i] ?? 0);
      }
      for (const direction of moved.values()) normalise(direction);
      return moved;
    },

    /** The sources of the scope, with what their chunks are compared with. */
    async prepare(directions: ReadonlyMap<string, Float32Array>): Promise<ComparedSource[]> {
      const prepared: ComparedSource[] = [];
      for (const source of scope.sources) {
        const { base, firstOrdinal, nextOrdinal, modelVersion } = source;
        const direction = directions.get(source.sourceId);
        const codes = direction && (await loadCodes(tx, appId, source, cache.codes, threads));
        const compared = codes && { compared: { direction, codes } };
        prepared.push({ base, firstOrdinal, nextOrdinal, modelVersion, ...compared });
      }
      return prepared;
    },
  };
}

/** What each source's model says of the given words: what is cached, and what `read` returns for the others. */
async function readWords<Value extends number | Float32Array>(
  cache: Cache<Value | null>,
  wanted: readonly WantedWord[],
  read: (missing: ModelTerm[]) => Promise<{ sourceId: string; term: string; value: Value }[]>,
): Promise<Map<string, Value>> {
  const found = new Map<string, Value>();
  const missing: WantedWord[] = [];
  for (const one of wanted) {
    const known = cache.get(cacheKey(one.source, one.term));
    if (known === undefined) missing.push(one);
    else if (known !== null) found.set(wordKey(one.source, one.term), known);
  }
  const asked = missing.map(({ source, term }) => ({
    sourceId: source.sourceId,
    version: source.modelVersion,
    term,
  }));
  for (const row of await read(asked)) found.set(wordKey(row, row.term), row.value);
  for (const { source, term } of missing) {
    const value = found.get(wordKey(source, term)) ?? null;
    cache.set(cacheKey(source, term), value, ...(ArrayBuffer.isView(value) ? [value] : []));
  }
  return found;
}

/** The source's codes as of this snapshot or later: the cached ones plus newer ones from the database. */
async function loadCodes(
  tx: Transaction,
  appId: string,
  source: PlacedSource,
  cache: Cache<ModelCodes>,
  threads: ComputingThreads,
): Promise<ModelCodes> {
  const key = `${source.sourceId}/${source.modelVersion}`;
  return inTurn(key, async () => {
    const cached = cache.get(key);
    const usable =
      cached !== undefined && source.firstOrdinal - cached.firstOrdinal <= source.storedChunks + staleCodesMax;
    let codes = usable ? cached : emptyCodes(source.firstOrdinal, source.modelDimensions);
    if (usable && codes.codeVersion >= source.codeVersion && capacityOf(codes) >= source.nextOrdinal) return codes;
    if (capacityOf(codes) < source.nextOrdinal) codes = withRoomUpTo(codes, source.nextOrdinal);
    // Codes are only added, so another search may read the same arrays meanwhile.
    const { codeVersion } = codes;
    let runs: CodeRun[] = [];
    let size = 0;
    let memory = threads.borrow();
    const adding: Promise<void>[] = [];
    const add = () => {
      const added = threads.run(appId, size, 'addCodes', { codes, runs });
      memory.giveBack();
      // Reported below.
      added.catch(() => {});
      adding.push(added);
      runs = [];
      size = 0;
      memory = threads.borrow();
    };
    await readModelCodes(tx, appId, source, codeVersion, (run) => {
      runs.push({ ...run, content: memory.copy(run.content) });
      size += run.content.length;
      // Threads add what has arrived while the rest is on its way.
      if (size >= addedBytes) add();
    });
    add();
    await Promise.all(adding);
    codes.codeVersion = Math.max(codes.codeVersion, source.codeVersion);
    cache.set(key, codes, codes.directions.bytes, codes.inverses, codes.strengths);
    return codes;
  });
}

/** Codes are added in parts of about this size. */
const addedBytes = 4 * 1024 * 1024;
/** Codes may begin this far before the first live chunk, plus the number of live ones. */
const staleCodesMax = 10_000;

function capacityOf(codes: ModelCodes): number {
  return codes.firstOrdinal + codes.inverses.length;
}

function normalise(vector: Float32Array): void {
  let squares = 0;
  for (const value of vector) squares += value * value;
  if (squares === 0) return;
  const scale = 1 / Math.sqrt(squares);
  for (let i = 0; i < vector.length; i++) vector[i] = (vector[i] as number) * scale;
}

export function wordKey(source: { sourceId: string }, term: string): string {
  return `${source.sourceId}/${term}`;
}

function cacheKey(source: PlacedSource, term: string): string {
  return `${source.sourceId}/${source.modelVersion}/${term}`;
}
