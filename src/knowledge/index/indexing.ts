import { hash } from 'node:crypto';
import { type PackedVector, packedCode, packWithCode, unpackVector } from '../../content/embed/codes.ts';
import { EmbeddingError } from '../../content/embed/embedder.ts';
import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import type { HeadingFragments } from '../../content/fragments.ts';
import type { ParserPool } from '../../content/parse/pool/pool.ts';
import { type PreparedText, type PrepareInput, type PrepareTerms, withContext } from '../../content/prepare.ts';
import type { Database, Db, Transaction } from '../../db/database.ts';
import { defined } from '../../lib/defined.ts';
import { storableText } from '../../lib/storable-text.ts';
import * as documents from '../documents/store.ts';
import {
  type DocumentRow,
  type DocumentWrite,
  findDocumentById,
  listChunks,
  upsertDocuments,
} from '../documents/store.ts';
import { notePending } from '../embedding/store.ts';
import { foldIn } from '../learning/fold-in.ts';
import { discardModel } from '../learning/store.ts';
import { changeIngestionReaders } from '../permissions/store.ts';
import {
  appendChunks,
  countRestricted,
  deleteOtherVectors,
  dropUnusedLanguages,
  flushBundles,
  type IndexState,
  insertVectors,
  listVectors,
  lockIndex,
  removeChunks,
  type SourceKey,
  type StoredVector,
} from './store.ts';

/** A document without its text; the position of its chunks is determined when it is written. */
export type DocumentFacts = Pick<
  DocumentWrite,
  'id' | 'title' | 'fileId' | 'metadata' | 'contentType' | 'bytesHash' | 'sourceUrl' | 'seenBy'
> & {
  /** The new list of grants, or null for every reader; undefined keeps that of the earlier version. */
  aclId: string | null | undefined;
};

/** The language of a source's texts, if it is set, and the language of texts whose language is not detected. */
export type TextLanguage = Pick<PrepareInput, 'language' | 'otherwise'>;

/** A document's text, chunked and indexed, but not yet stored. */
export type PreparedDocument = Omit<PreparedText, 'vectors'> & {
  text: Buffer;
  fragments: HeadingFragments | undefined;
  textHash: Buffer;
  words: number;
};

/**
 * Chunks and indexes a text in a parser process, because it is as untrusted as the bytes that it came from, and a long
 * one takes seconds. With the built-in embedder, also computes the vectors that `known` lacks and adds them to `known`.
 * NUL becomes U+FFFD, because PostgreSQL cannot store it. Throws ParseError.
 */
export async function prepareDocument(
  { parser, embedder }: { parser: ParserPool; embedder: SharedEmbedder },
  input: {
    text: string;
    fragments: HeadingFragments | undefined;
    title: string | undefined;
    language: TextLanguage;
    known: KnownVectors;
    lane: string;
    /** What the task that read the text has prepared, with the same terms. */
    prepared?: PreparedText | undefined;
  },
  signal: AbortSignal | undefined,
): Promise<PreparedDocument & { embedded: number }> {
  const text = Buffer.from(storableText(input.text));
  const { vectors, ...prepared } =
    input.prepared ??
    (await parser.prepare(
      { text, fragments: input.fragments, ...prepareTerms(embedder, input) },
      { lane: input.lane, ...defined({ signal }) },
    ));
  for (const [hash, vector] of vectors) input.known.set(hash, vector);
  return {
    ...prepared,
    text,
    fragments: input.fragments,
    textHash: hash('sha256', text, 'buffer'),
    words: prepared.chunks.reduce((sum, chunk) => sum + chunk.words, 0),
    embedded: vectors.length,
  };
}

/** How parsers prepare a text: with the built-in embedder, they also compute the vectors that `known` lacks. */
export function prepareTerms(
  embedder: SharedEmbedder,
  { title, language, known }: { title: string | undefined; language: TextLanguage; known: KnownVectors },
): PrepareTerms {
  const embedIn = embedder.builtIn;
  return { title, ...language, embedIn, embedded: embedIn === undefined ? [] : [...known.keys()] };
}

/** Vectors by the hash (hex) of the chunk's context. */
export type KnownVectors = Map<string, PackedVector>;

/** Reads the document's current vectors of every model, for chunks that do not change. */
export async function readKnownVectors(db: Db, document: DocumentRow): Promise<Map<string, KnownVectors>> {
  const key = { appId: document.appId, sourceId: document.sourceId };
  const end = document.firstOrdinal + document.chunkCount;
  const vectors = await listVectors(db, key, undefined, document.firstOrdinal, end);
  const chunks = await listChunks(db, key.appId, key.sourceId, document.firstOrdinal, end);
  const hashes = new Map(chunks.map((chunk) => [chunk.ordinal, chunk.hash.toString('hex')]));
  const byModel = new Map<string, KnownVectors>();
  for (const { ordinal, model, content: vector } of vectors) {
    const hash = hashes.get(ordinal);
    if (hash === undefined) continue;
    const known: KnownVectors = byModel.get(model) ?? new Map();
    byModel.set(model, known.set(hash, { vector, code: packedCode(unpackVector(vector)) }));
  }
  return byModel;
}

/** Embeds the chunks that `known` lacks and adds them to it. Returns their number. Throws EmbeddingError. */
export async function embedChunks(
  embedder: SharedEmbedder,
  appId: string,
  prepared: PreparedDocument,
  known: KnownVectors,
  signal: AbortSignal | undefined,
): Promise<number> {
  const missing = new Map<string, string>();
  for (const { hash, context } of prepared.chunks)
    if (context !== undefined && !known.has(hash)) missing.set(hash, context);
  const entries = [...missing];
  for (let from = 0; from < entries.length; from += embedder.batchTexts) {
    const batch = entries.slice(from, from + embedder.batchTexts);
    const vectors = await embedder.embed(
      appId,
      batch.map(([, text]) => text),
      'passage',
      signal,
    );
    for (const [i, [hash]] of batch.entries()) {
      const vector = vectors[i];
      if (vector) known.set(hash, packWithCode(vector));
    }
  }
  return missing.size;
}

/** A document to write, with vectors of `model`. `replaces` is whether it replaces one with the same id. */
type PreparedWrite = {
  facts: DocumentFacts;
  prepared: PreparedDocument;
  model: string;
  vectors: KnownVectors;
  replaces: boolean;
};

/** The limits of documents that are written together: their texts are in memory, and the index is locked meanwhile. */
const groupMax = { documents: 16, chunks: 1_024, bytes: 4 * 1024 * 1024 };

/** Divides documents into groups that are written together, in their order. A group has each id once. */
export function groupWrites<Write extends PreparedWrite>(writes: readonly Write[]): Write[][] {
  const groups: Write[][] = [];
  let chunks = 0;
  let bytes = 0;
  for (const write of writes) {
    const { facts, prepared } = write;
    chunks += prepared.chunks.length;
    bytes += prepared.text.length;
    const last = groups.at(-1);
    const fits = last && last.length < groupMax.documents && chunks <= groupMax.chunks && bytes <= groupMax.bytes;
    if (fits && last.every((one) => one.facts.id !== facts.id)) last.push(write);
    else {
      groups.push([write]);
      chunks = prepared.chunks.length;
      bytes = prepared.text.length;
    }
  }
  return groups;
}

type WriteResult = { chunks: number; embedded: boolean };
type Written = { write: PreparedWrite; old: DocumentRow | undefined; aclId: string | null; vectors: StoredVector[] };

/**
 * Writes documents into the locked index in place of their earlier versions, in the caller's transaction: a search sees
 * the old texts or the new ones. No id may occur twice. Calls `onFlush` if the index has a new segment. The result of a
 * document is undefined if the document to be replaced was deleted, which must not reappear.
 */
export async function writeDocuments(
  tx: Transaction,
  key: SourceKey,
  state: IndexState,
  writes: readonly PreparedWrite[],
  onFlush: () => Promise<void>,
): Promise<(WriteResult | undefined)[]> {
  const written: Written[] = [];
  let next = state.nextOrdinal;
  for (const write of writes) {
    const { facts, prepared, replaces } = write;
    const old = replaces ? await findDocumentById(tx, key.appId, facts.id) : undefined;
    if (replaces && !old) continue;
    if (old) await removeChunks(tx, key, old);
    const vectors = prepared.chunks.flatMap(({ hash }, i) => {
      const vector = write.vectors.get(hash);
      return vector ? [{ ordinal: next + i, ...vector }] : [];
    });
    next += prepared.chunks.length;
    written.push({ write, old, aclId: facts.aclId === undefined ? (old?.aclId ?? null) : facts.aclId, vectors });
  }
  const unstored = written.length > 0 ? await writeRows(tx, key, state, written) : [];
  for (const { write, old, aclId } of written)
    if (old) await noteReplaced(tx, key, state, old, write.prepared.language, aclId);
  if (unstored.length > 0) {
    await flushBundles(tx, key, state, unstored);
    await onFlush();
  }
  const results = new Map(written.map((one) => [one.write, { chunks: countChunks(one), embedded: isEmbedded(one) }]));
  return writes.map((write) => results.get(write));
}

/** Inserts the rows of documents at the end of the locked index. Returns what `appendChunks` does. */
async function writeRows(tx: Transaction, key: SourceKey, state: IndexState, written: readonly Written[]) {
  const firstOrdinal = state.nextOrdinal;
  let next = firstOrdinal;
  let aclVersion = state.aclVersion;
  const rows = written.map((one) => {
    const { facts, prepared } = one.write;
    if (one.aclId !== null) aclVersion += 1;
    next += prepared.chunks.length;
    const document: DocumentWrite = {
      ...facts,
      ...key,
      contentHash: prepared.textHash,
      totalLines: prepared.lines,
      totalSize: prepared.text.length,
      firstOrdinal: next - prepared.chunks.length,
      chunkCount: prepared.chunks.length,
      wordCount: prepared.words,
      language: prepared.language,
      embeddingModel: isEmbedded(one) ? one.write.model : null,
      aclId: one.aclId,
      aclVersion: one.aclId === null ? 0 : aclVersion,
    };
    return { document, text: prepared.text, fragments: prepared.fragments };
  });
  const appended = written.map(({ write: { facts, prepared }, aclId }) => {
    const { chunks, bundles, language } = prepared;
    return { id: facts.id, isRestricted: aclId !== null, moves: false, chunks, bundles, language };
  });
  const models = [...new Set(written.map(({ write }) => write.model))];
  const vectorsOf = (model: string) => written.filter(({ write }) => write.model === model).map((one) => one.vectors);
  // These are sent together and executed in this order.
  const [unstored] = await Promise.all([
    appendChunks(tx, key, state, appended),
    upsertDocuments(tx, key.appId, rows),
    ...models.map((model) => insertVectors(tx, key, state, model, vectorsOf(model))),
    ...(state.embedder === undefined ? [] : [notePending(tx, key)]),
  ]);
  const bundles = appended.flatMap((document) => document.bundles);
  await foldIn(tx, key, state, firstOrdinal, bundles);
  return unstored;
}

/** Updates what depends on the language and the readers of a document that was replaced. */
async function noteReplaced(
  tx: Transaction,
  key: SourceKey,
  state: IndexState,
  old: DocumentRow,
  language: PreparedDocument['language'],
  aclId: string | null,
): Promise<void> {
  const isRestricted = aclId !== null;
  if (old.aclId === null && (isRestricted || old.language !== language)) await dropUnusedLanguages(tx, key);
  if (old.aclId !== aclId) await changeIngestionReaders(tx, old, aclId);
  if (old.aclId !== null || !isRestricted) return;
  await discardModel(tx, key);
  state.modelVersion = 0;
}

function countChunks({ write }: Written): number {
  return write.prepared.chunks.length;
}

function isEmbedded(written: Written): boolean {
  return written.vectors.length === countChunks(written);
}

/** Removes a document from its source, whose index is locked. Returns false if it was already deleted. */
export async function removeDocument(tx: Transaction, key: SourceKey, documentId: string): Promise<boolean> {
  const gone = await documents.deleteDocument(tx, key.appId, documentId);
  if (!gone) return false;
  await removeChunks(tx, key, gone);
  if (gone.aclId === null) await dropUnusedLanguages(tx, key);
  return true;
}

/** Changes the readers of a document of the locked index. Searches that begin after the commit use the new ones. */
export async function setDocumentAcl(
  tx: Transaction,
  key: SourceKey,
  state: IndexState,
  document: DocumentRow,
  aclId: string | null,
): Promise<void> {
  if (document.aclId === aclId) return;
  await documents.updateDocumentAcl(tx, key.appId, document.id, aclId, state.aclVersion + 1);
  await countRestricted(tx, key, state, { ...document, aclId }, document.aclId !== null);
  await changeIngestionReaders(tx, document, aclId);
  if (document.aclId === null && document.chunkCount > 0) await discardModel(tx, key);
}

/** A chunk that lacks a vector. */
type LackingChunk = { document: DocumentRow; ordinal: number; text: string };

/**
 * Computes the vectors that stored documents of a source lack, with texts of several in one request. What was written
 * before a failure is not computed again. Throws EmbeddingError, including when the source has no index.
 */
export async function embedStoredDocuments(
  db: Database,
  embedder: SharedEmbedder,
  key: SourceKey,
  ids: readonly string[],
  signal: AbortSignal | undefined,
): Promise<void> {
  let lacking: LackingChunk[] = [];
  let whole: DocumentRow[] = [];
  const flush = async (): Promise<void> => {
    const vectors =
      lacking.length === 0
        ? []
        : await embedder.embed(
            key.appId,
            lacking.map(({ text }) => text),
            'passage',
            signal,
          );
    await db.begin((tx) => storeVectors(tx, embedder, key, { lacking, vectors, whole }));
    lacking = [];
    whole = [];
  };
  for (const id of ids) {
    const document = await findDocumentById(db, key.appId, id);
    if (!document || document.embeddingModel === embedder.model) continue;
    for (const chunk of await listLackingChunks(db, embedder.model, document)) {
      lacking.push(chunk);
      if (lacking.length >= embedder.batchTexts) await flush();
    }
    whole.push(document);
  }
  if (whole.length > 0) await flush();
}

async function listLackingChunks(db: Database, model: string, document: DocumentRow): Promise<LackingChunk[]> {
  const key = { appId: document.appId, sourceId: document.sourceId };
  const end = document.firstOrdinal + document.chunkCount;
  const has = new Set((await listVectors(db, key, model, document.firstOrdinal, end)).map((row) => row.ordinal));
  const chunks = (await listChunks(db, key.appId, key.sourceId, document.firstOrdinal, end)).filter(
    (chunk) => !has.has(chunk.ordinal),
  );
  const content = chunks.length > 0 ? await documents.readText(db, key.appId, document.id) : undefined;
  return chunks.map(({ ordinal, startByte, endByte, headingPath }) => {
    const text = content?.subarray(startByte, endByte).toString() ?? '';
    return { document, ordinal, text: withContext(text, document.title ?? undefined, headingPath) };
  });
}

type NewVectors = { lacking: LackingChunk[]; vectors: Float32Array[]; whole: DocumentRow[] };

/** Stores the vectors of documents that have not been replaced, and marks those that now have all of theirs. */
async function storeVectors(
  tx: Transaction,
  embedder: SharedEmbedder,
  key: SourceKey,
  { lacking, vectors, whole }: NewVectors,
): Promise<void> {
  const { model, dimensions } = embedder;
  const state = await lockIndex(tx, key);
  const rows = new Map([...lacking.map(({ document }) => document), ...whole].map((row) => [row.id, row]));
  const now = await documents.listPlaces(tx, key.appId, [...rows.keys()]);
  // Otherwise, jobs that look for documents without vectors would find these again and again.
  if (!state && now.length > 0) throw new EmbeddingError('The search index of its source is missing.');
  if (!state) return;
  const isSame = new Set(now.filter((row) => rows.get(row.id)?.firstOrdinal === row.firstOrdinal).map(({ id }) => id));
  const stored = new Map<string, StoredVector[]>();
  for (const [i, { document, ordinal }] of lacking.entries()) {
    if (!isSame.has(document.id)) continue;
    const vector = vectors[i] ?? new Float32Array(dimensions);
    const ofDocument = stored.get(document.id) ?? [];
    ofDocument.push({ ordinal, ...packWithCode(vector) });
    stored.set(document.id, ofDocument);
  }
  await insertVectors(tx, key, state, model, [...stored.values()]);
  for (const { id, firstOrdinal, chunkCount } of whole) {
    if (!(await documents.setEmbedded(tx, key.appId, id, firstOrdinal, model))) continue;
    // Those of another embedder of the source may still serve.
    if (state.embedder === undefined) await deleteOtherVectors(tx, key, model, firstOrdinal, firstOrdinal + chunkCount);
  }
}
