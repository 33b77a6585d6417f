import { codeHeaderBytes, frequencyWeight, packChunk, unpackWord } from '../../content/learn/codes.ts';
import { listEntries, readPostings } from '../../content/postings.ts';
import type { Transaction } from '../../db/database.ts';
import { copyBytes } from '../index/cache.ts';
import type { SourceKey } from '../index/store.ts';
import { growModel, insertCodes, listWords } from './store.ts';

/** The model of a locked index; version 0 is none. */
type ModelState = { modelVersion: number; modelDimensions: number };

/** Packed vectors of words, null for those that the model does not know. */
type Words = Map<string, Buffer | null>;

/** Cached words of a process, about 300 bytes each. */
const cachedWordsMax = 65_536;
/**
 * The words of models by source and version, the last used last. Without this cache, each document reads about 50 KB of
 * vectors. The words of a version never change.
 */
const cachedWords = new Map<string, Words>();

/**
 * Places new chunks in the space of the source's model, in the transaction that stores them, so that searches find them
 * by meaning immediately. If the quota of bytes is exceeded, the source loses its model. A bundle's ordinals count from
 * 0.
 */
export async function foldIn(
  tx: Transaction,
  key: SourceKey,
  { modelVersion, modelDimensions: dimensions }: ModelState,
  firstOrdinal: number,
  bundles: readonly { chunkCount: number; content: Buffer }[],
): Promise<void> {
  if (modelVersion === 0 || bundles.length === 0) return;
  const size = codeHeaderBytes + dimensions;
  const chunks = bundles.reduce((sum, bundle) => sum + bundle.chunkCount, 0);
  const codeVersion = await growModel(tx, key, chunks * size);
  if (codeVersion === undefined) return;
  const read = bundles.map((bundle) => ({ ...bundle, entries: listEntries(bundle.content) }));
  const terms = read.flatMap(({ entries }) => entries.map(({ term }) => term));
  const words = await readWords(tx, key, modelVersion, terms);
  const codes = Buffer.alloc(chunks * size);
  const vector = new Float32Array(dimensions);
  let done = 0;
  for (const { chunkCount, content, entries } of read) {
    const sums = new Float64Array(chunkCount * dimensions);
    for (const { term, start, end } of entries) {
      const packed = words.get(term);
      if (!packed) continue;
      unpackWord(packed, vector);
      const add = (ordinal: number, frequency: number) => {
        const at = ordinal * dimensions;
        const weight = frequencyWeight(frequency);
        for (let j = 0; j < dimensions; j++) sums[at + j] = (sums[at + j] as number) + weight * (vector[j] as number);
      };
      readPostings(content, add, start, end);
    }
    for (let i = 0; i < chunkCount; i++) packChunk(sums, i * dimensions, dimensions, codes, (done + i) * size);
    done += chunkCount;
  }
  await insertCodes(tx, key, modelVersion, { firstOrdinal, chunkCount: chunks, codeVersion, content: codes });
}

/** Reads the packed vectors of at least these words, which may repeat. */
async function readWords(tx: Transaction, key: SourceKey, version: number, terms: readonly string[]): Promise<Words> {
  const name = `${key.appId}/${key.sourceId}/${version}`;
  const words: Words = cachedWords.get(name) ?? new Map();
  cachedWords.delete(name);
  cachedWords.set(name, words);
  const missing = [...new Set(terms.filter((term) => !words.has(term)))];
  if (missing.length === 0) return words;
  const found = await listWords(tx, key, version, missing);
  for (const term of missing) words.set(term, null);
  for (const { term, vector } of found) words.set(term, copyBytes(vector));
  evictWords();
  return words;
}

/** Discards the cached words of the least recently written sources. */
function evictWords(): void {
  let count = [...cachedWords.values()].reduce((sum, words) => sum + words.size, 0);
  for (const [name, words] of cachedWords) {
    if (count <= cachedWordsMax) return;
    count -= words.size;
    cachedWords.delete(name);
  }
}
