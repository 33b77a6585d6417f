import { signCode, unpackVector } from '../content/embed/codes.ts';
import type { Embedder } from '../content/embed/embedder.ts';
import type { Database, Transaction } from '../db/database.ts';
import * as documents from './document-store.ts';
import {
  appendChunks,
  bundleChunksMax,
  bundleDocumentsMax,
  dropBelow,
  flushBundles,
  insertVectors,
  lockIndex,
  removeChunks,
  type SourceKey,
} from './index-store.ts';
import { readKnownVectors } from './indexing.ts';
import { prepareDocument } from './prepare.ts';

/**
 * Rids a source's index of what was replaced or deleted: moves every live document behind the present end of the index,
 * one transaction each, and drops everything before. Searches see each document once all the while. Safe to repeat and
 * to break off.
 */
export async function compactSource(
  db: Database,
  embedder: Embedder,
  key: SourceKey,
  signal: AbortSignal | undefined,
): Promise<void> {
  const boundary = await db.begin(async (tx) => {
    const state = await lockIndex(tx, key);
    if (state) await flushBundles(tx, key, state);
    return state?.nextOrdinal;
  });
  if (boundary === undefined) return;
  for (;;) {
    const ids = await documents.listBelow(db, key.appId, key.sourceId, boundary, 50);
    if (ids.length === 0) break;
    for (const id of ids) {
      if (signal?.aborted) return;
      await moveDocument(db, embedder, key, id, boundary);
    }
  }
  await db.begin(async (tx) => {
    if (await lockIndex(tx, key)) await dropBelow(tx, key, boundary);
  });
}

async function moveDocument(db: Database, embedder: Embedder, key: SourceKey, id: string, boundary: number) {
  await db.begin(async (tx: Transaction) => {
    const state = await lockIndex(tx, key);
    const document = state && (await documents.findDocumentById(tx, key.appId, id));
    if (!document || document.firstOrdinal >= boundary) return;
    const text = (await documents.readText(tx, key.appId, id)) ?? Buffer.alloc(0);
    const prepared = prepareDocument(text.toString(), document.title ?? undefined, state.language);
    const known = await readKnownVectors(tx, document, embedder.model);
    const firstOrdinal = state.nextOrdinal;
    const vectors = prepared.chunks.flatMap((chunk, i) => {
      const vector = known.get(chunk.hash.toString('hex'));
      return vector ? [{ ordinal: firstOrdinal + i, vector, code: signCode(unpackVector(vector)) }] : [];
    });
    await removeChunks(tx, key, document);
    await appendChunks(tx, key, state, id, prepared.chunks);
    await insertVectors(tx, key, state, embedder.model, vectors);
    await documents.moveDocument(tx, key.appId, id, {
      firstOrdinal,
      chunkCount: prepared.chunks.length,
      wordCount: prepared.words,
      embeddingModel: vectors.length === prepared.chunks.length ? embedder.model : null,
    });
    if (state.bundledDocuments >= bundleDocumentsMax || state.bundledChunks >= bundleChunksMax)
      await flushBundles(tx, key, state);
  });
}
