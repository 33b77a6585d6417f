import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import type { ParserPool } from '../../content/parse/pool/pool.ts';
import type { StemLanguage } from '../../content/terms.ts';
import type { Database, Transaction } from '../../db/database.ts';
import * as documents from '../documents/store.ts';
import { type Embedders, servingEmbedder } from '../embedding/embedders.ts';
import { notePending } from '../embedding/store.ts';
import { payloadLanguage } from '../kinds/payload.ts';
import { foldIn } from '../learning/fold-in.ts';
import { deleteCodesBelow } from '../learning/store.ts';
import { findSourceById } from '../sources/store.ts';
import { type KnownVectors, prepareDocument, readKnownVectors, type TextLanguage } from './indexing.ts';
import {
  appendChunks,
  deleteIndexBelow,
  flushBundles,
  insertVectors,
  lockIndex,
  removeChunks,
  type SourceKey,
} from './store.ts';

type CompactDeps = { db: Database; embedders: Embedders; parser: ParserPool; language: StemLanguage };

/**
 * Removes replaced and deleted chunks from a source's index: reads the words of every live document again and moves it
 * behind the current end of the index, in one transaction each, then drops everything before. Searches always see each
 * document once. Safe to repeat and to interrupt.
 */
export async function compactSource(deps: CompactDeps, key: SourceKey, signal: AbortSignal | undefined): Promise<void> {
  const { db } = deps;
  const start = await db.begin(async (tx) => {
    const state = await lockIndex(tx, key);
    if (state) await flushBundles(tx, key, state);
    return state;
  });
  if (start === undefined) return;
  const boundary = start.nextOrdinal;
  const source = await findSourceById(db, key.appId, key.sourceId);
  if (source === undefined) return;
  const embedder = await servingEmbedder(deps.embedders, source);
  const language = { language: payloadLanguage(source.payload), otherwise: deps.language };
  for (;;) {
    const ids = await documents.listDocumentsBelow(db, key.appId, key.sourceId, boundary, 50);
    if (ids.length === 0) break;
    for (const id of ids) {
      if (signal?.aborted) return;
      await moveDocument({ ...deps, embedder }, key, id, boundary, language, signal);
    }
  }
  await db.begin(async (tx) => {
    if (!(await lockIndex(tx, key))) return;
    await deleteIndexBelow(tx, key, boundary);
    await deleteCodesBelow(tx, key, boundary);
  });
}

const emptyText = { content: Buffer.alloc(0), fragments: null };

async function moveDocument(
  deps: CompactDeps & { embedder: SharedEmbedder },
  key: SourceKey,
  id: string,
  boundary: number,
  language: TextLanguage,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { db, embedder } = deps;
  const before = await documents.findDocumentById(db, key.appId, id);
  if (!before || before.firstOrdinal >= boundary) return;
  const { content, fragments } = (await documents.readTextWithFragments(db, key.appId, id)) ?? emptyText;
  const byModel = await readKnownVectors(db, before);
  const known: KnownVectors = byModel.get(embedder.model) ?? new Map();
  byModel.set(embedder.model, known);
  const title = before.title ?? undefined;
  const input = {
    text: content.toString(),
    fragments: fragments ?? undefined,
    title,
    language,
    known,
    lane: key.appId,
  };
  const prepared = await prepareDocument(deps, input, signal);
  await db.begin(async (tx: Transaction) => {
    const state = await lockIndex(tx, key);
    const document = state && (await documents.findDocumentById(tx, key.appId, id));
    // A document that was replaced meanwhile is already behind the boundary.
    if (!document || document.firstOrdinal !== before.firstOrdinal) return;
    const firstOrdinal = state.nextOrdinal;
    const vectorsOf = (known: KnownVectors | undefined) =>
      prepared.chunks.flatMap((chunk, i) => {
        const vector = known?.get(chunk.hash);
        return vector ? [{ ordinal: firstOrdinal + i, ...vector }] : [];
      });
    const isWhole = (model: string) => vectorsOf(byModel.get(model)).length === prepared.chunks.length;
    const embeddingModel = [document.embeddingModel, embedder.model].find((model) => model !== null && isWhole(model));
    await removeChunks(tx, key, document);
    const isRestricted = document.aclId !== null;
    const unstored = await appendChunks(tx, key, state, [{ id, isRestricted, moves: true, ...prepared }]);
    await foldIn(tx, key, state, firstOrdinal, prepared.bundles);
    for (const [model, known] of byModel) await insertVectors(tx, key, state, model, [vectorsOf(known)]);
    if (state.embedder !== undefined) await notePending(tx, key);
    await documents.moveDocument(tx, key.appId, id, {
      firstOrdinal,
      chunkCount: prepared.chunks.length,
      wordCount: prepared.words,
      language: prepared.language,
      embeddingModel: embeddingModel ?? null,
      aclVersion: isRestricted ? state.aclVersion : 0,
    });
    if (unstored.length > 0) await flushBundles(tx, key, state, unstored);
  });
}
