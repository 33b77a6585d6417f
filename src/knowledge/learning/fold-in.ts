import { codeHeaderBytes, frequencyWeight, packChunk, unpackWord } from '../../content/learn/codes.ts';
import { readBundle, unpackPostings } from '../../content/postings.ts';
import type { Transaction } from '../../db/database.ts';
import { copyBytes, openCaches } from '../index/cache.ts';
import type { SourceKey } from '../index/store.ts';
import { growModel, insertCodes, listWords } from './store.ts';

/** The model of a locked index; version 0 is none. */
type ModelState = { modelVersion: number; modelDimensions: number };

/** Of a process. The words of the last sources that it wrote to: without them, each document reads some 200 KB of vectors. */
const cacheBytesMax = 16 * 1024 * 1024;
/** Packed vectors of words, null for those that a model does not know. The words of a version never change. */
const cachedWords = openCaches(cacheBytesMax)<Buffer | null>('words');

/**
 * Places new chunks in the space of the source's model, in the transaction that stores them: a search finds them by
 * meaning from its first moment. Over the quota of bytes, the source loses its model instead. A bundle's ordinals count from 0.
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
  let next = firstOrdinal;
  for (const { chunkCount, content } of bundles) {
    const entries = readBundle(content);
    const words = await readWords(
      tx,
      key,
      modelVersion,
      entries.map((entry) => entry.term),
    );
    const vector = new Float32Array(dimensions);
    const sums = new Float64Array(chunkCount * dimensions);
    for (const { term, postings } of entries) {
      const packed = words.get(term);
      if (!packed) continue;
      unpackWord(packed, vector);
      const { ordinals, tallies } = unpackPostings(postings);
      for (let i = 0; i < ordinals.length; i++) {
        const at = (ordinals[i] as number) * dimensions;
        const weight = frequencyWeight((tallies[i] as number) >>> 1);
        for (let j = 0; j < dimensions; j++) sums[at + j] = (sums[at + j] as number) + weight * (vector[j] as number);
      }
    }
    const codes = Buffer.alloc(chunkCount * size);
    for (let i = 0; i < chunkCount; i++) packChunk(sums, i * dimensions, dimensions, codes, i * size);
    await insertCodes(tx, key, modelVersion, { firstOrdinal: next, chunkCount, codeVersion, content: codes });
    next += chunkCount;
  }
}

/** The packed vectors of those of the words that the model knows. */
async function readWords(tx: Transaction, key: SourceKey, version: number, terms: readonly string[]) {
  const keyOf = (term: string) => `${key.appId}/${key.sourceId}/${version}/${term}`;
  const found = new Map<string, Buffer>();
  const missing: string[] = [];
  for (const term of terms) {
    const known = cachedWords.get(keyOf(term));
    if (known) found.set(term, known);
    else if (known === undefined) missing.push(term);
  }
  if (missing.length === 0) return found;
  for (const { term, vector } of await listWords(tx, key, version, missing)) found.set(term, copyBytes(vector));
  for (const term of missing) {
    const vector = found.get(term) ?? null;
    cachedWords.set(keyOf(term), vector, ...(vector ? [vector] : []));
  }
  return found;
}
