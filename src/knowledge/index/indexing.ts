import { createHash } from 'node:crypto';
import { type PackedVector, packedCode, packWithCode, unpackVector } from '../../content/embed/codes.ts';
import { EmbeddingError } from '../../content/embed/embedder.ts';
import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import type { HeadingFragments } from '../../content/fragments.ts';
import type { ParserPool } from '../../content/parse/pool/pool.ts';
import { type PreparedText, type PrepareInput, withContext } from '../../content/prepare.ts';
import type { Database, Db, Transaction } from '../../db/database.ts';
import { defined } from '../../lib/defined.ts';
import * as documents from '../documents/store.ts';
import {
  type DocumentRow,
  type DocumentWrite,
  findDocumentById,
  listChunks,
  upsertDocuments,
} from '../documents/store.ts';
import { foldIn } from '../learning/fold-in.ts';
import { discardModel } from '../learning/store.ts';
import { changeIngestionReaders } from '../permissions/store.ts';
import {
  appendChunks,
  bundleChunksMax,
  bundleDocumentsMax,
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
  },
  signal: AbortSignal | undefined,
): Promise<PreparedDocument & { embedded: number }> {
  const text = Buffer.from(input.text.replaceAll('\0', '\uFFFD').toWellFormed());
  const { vectors, ...prepared } = await parser.prepare(
    {
      text,
      fragments: input.fragments,
      title: input.title,
      ...input.language,
      embedIn: embedder.builtIn,
      embedded: embedder.builtIn === undefined ? [] : [...input.known.keys()],
    },
    { lane: input.lane, ...defined({ signal }) },
  );
  for (const [hash, vector] of vectors) input.known.set(hash, vector);
  return {
    ...prepared,
    text,
    fragments: input.fragments,
    textHash: createHash('sha256').update(text).digest(),
    words: prepared.chunks.reduce((sum, chunk) => sum + chunk.words, 0),
    embedded: vectors.length,
  };
}

/** Vectors by the hash (hex) of the chunk's context. */
export type KnownVectors = Map<string, PackedVector>;

/** Reads the document's current vectors, for chunks that do not change. */
export async function readKnownVectors(db: Db, document: DocumentRow, model: string): Promise<KnownVectors> {
  const key = { appId: document.appId, sourceId: document.sourceId };
  const end = document.firstOrdinal + document.chunkCount;
  const vectors = await listVectors(db, key, model, document.firstOrdinal, end);
  const byOrdinal = new Map(vectors.map((row) => [row.ordinal, row.content]));
  const known: KnownVectors = new Map();
  for (const chunk of await listChunks(db, key.appId, key.sourceId, document.firstOrdinal, end)) {
    const vector = byOrdinal.get(chunk.ordinal);
    if (vector) known.set(chunk.hash.toString('hex'), { vector, code: packedCode(unpackVector(vector)) });
  }
  return known;
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

/** A document to write. `replaces` is whether it replaces one with the same id. */
type PreparedWrite = {
  facts: DocumentFacts;
  prepared: PreparedDocument;
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
 * Writes documents into the source's index in place of their earlier versions, in the caller's transaction: a search
 * sees the old texts or the new ones. No id may occur twice. Calls `onFlush` if the index has a new segment. The result
 * of a document is undefined if its source was deleted, or the document to be replaced, which must not reappear.
 */
export async function writeDocuments(
  tx: Transaction,
  key: SourceKey,
  writes: readonly PreparedWrite[],
  model: string,
  onFlush: () => Promise<void>,
): Promise<(WriteResult | undefined)[]> {
  const state = await lockIndex(tx, key);
  if (!state) return writes.map(() => undefined);
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
  if (written.length > 0) await writeRows(tx, key, state, written, model);
  for (const { write, old, aclId } of written)
    if (old) await noteReplaced(tx, key, old, write.prepared.language, aclId);
  if (state.bundledDocuments >= bundleDocumentsMax || state.bundledChunks >= bundleChunksMax) {
    await flushBundles(tx, key, state);
    await onFlush();
  }
  const results = new Map(written.map((one) => [one.write, { chunks: countChunks(one), embedded: isEmbedded(one) }]));
  return writes.map((write) => results.get(write));
}

/** Inserts the rows of documents at the end of the locked index. */
async function writeRows(
  tx: Transaction,
  key: SourceKey,
  state: IndexState,
  written: readonly Written[],
  model: string,
): Promise<void> {
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
      embeddingModel: isEmbedded(one) ? model : null,
      aclId: one.aclId,
      aclVersion: one.aclId === null ? 0 : aclVersion,
    };
    return { document, text: prepared.text, fragments: prepared.fragments };
  });
  const appended = written.map(({ write: { facts, prepared }, aclId }) => {
    const { chunks, bundles, language } = prepared;
    return { id: facts.id, isRestricted: aclId !== null, moves: false, chunks, bundles, language };
  });
  const vectors = written.map((one) => one.vectors);
  // These are sent together and executed in this order.
  await Promise.all([
    upsertDocuments(tx, key.appId, rows),
    appendChunks(tx, key, state, appended),
    insertVectors(tx, key, state, model, vectors),
  ]);
  const bundles = appended.flatMap((document) => document.bundles);
  await foldIn(tx, key, state, firstOrdinal, bundles);
}

/** Updates what depends on the language and the readers of a document that was replaced. */
async function noteReplaced(
  tx: Transaction,
  key: SourceKey,
  old: DocumentRow,
  language: PreparedDocument['language'],
  aclId: string | null,
): Promise<void> {
  const isRestricted = aclId !== null;
  if (old.aclId === null && (isRestricted || old.language !== language)) await dropUnusedLanguages(tx, key);
  if (old.aclId !== aclId) await changeIngestionReaders(tx, old, aclId);
  if (old.aclId === null && isRestricted) await discardModel(tx, key);
}

function countChunks({ write }: Written): number {
  return write.prepared.chunks.length;
}

function isEmbedded(written: Written): boolean {
  return written.vectors.length === countChunks(written);
}

/** Removes a document from its source. Returns false if either was already deleted. */
export async function removeDocument(tx: Transaction, key: SourceKey, documentId: string): Promise<boolean> {
  if (!(await lockIndex(tx, key))) return false;
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
  document: DocumentRow,
  aclId: string | null,
): Promise<void> {
  const state = await lockIndex(tx, key);
  if (!state || document.aclId === aclId) return;
  await documents.updateDocumentAcl(tx, key.appId, document.id, aclId, state.aclVersion + 1);
  await countRestricted(tx, key, state, { ...document, aclId }, document.aclId !== null);
  await changeIngestionReaders(tx, document, aclId);
  if (document.aclId === null && document.chunkCount > 0) await discardModel(tx, key);
}

/** Computes the vectors that a stored document lacks. Throws EmbeddingError, also if its source has no index. */
export async function embedStoredDocument(
  db: Database,
  embedder: SharedEmbedder,
  appId: string,
  documentId: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const document = await findDocumentById(db, appId, documentId);
  if (!document || document.embeddingModel === embedder.model) return;
  const key = { appId, sourceId: document.sourceId };
  const lock = async (tx: Transaction) => {
    const state = await lockIndex(tx, key);
    // Otherwise, jobs that look for documents without vectors would find this one again and again.
    if (!state && (await findDocumentById(tx, appId, documentId)))
      throw new EmbeddingError('The search index of its source is missing.');
    return state;
  };
  const end = document.firstOrdinal + document.chunkCount;
  const has = new Set(
    (await listVectors(db, key, embedder.model, document.firstOrdinal, end)).map((row) => row.ordinal),
  );
  const missing = (await listChunks(db, appId, key.sourceId, document.firstOrdinal, end)).filter(
    (chunk) => !has.has(chunk.ordinal),
  );
  const text = missing.length > 0 ? await documents.readText(db, appId, documentId) : undefined;
  for (let from = 0; from < missing.length; from += embedder.batchTexts) {
    const batch = missing.slice(from, from + embedder.batchTexts);
    const contexts = batch.map((chunk) =>
      withContext(
        text?.subarray(chunk.startByte, chunk.endByte).toString() ?? '',
        document.title ?? undefined,
        chunk.headingPath,
      ),
    );
    const vectors = await embedder.embed(appId, contexts, 'passage', signal);
    const stored = batch.map((chunk, i) => {
      const vector = vectors[i] ?? new Float32Array(embedder.dimensions);
      return { ordinal: chunk.ordinal, ...packWithCode(vector) };
    });
    const still = await db.begin(async (tx) => {
      const state = await lock(tx);
      if (!state) return false;
      const now = await findDocumentById(tx, appId, documentId);
      if (now?.firstOrdinal !== document.firstOrdinal) return false;
      await insertVectors(tx, key, state, embedder.model, [stored]);
      return true;
    });
    if (!still) return;
  }
  await db.begin(async (tx) => {
    if (!(await lock(tx))) return;
    const current = await documents.setEmbedded(tx, appId, documentId, document.firstOrdinal, embedder.model);
    if (current) await deleteOtherVectors(tx, key, embedder.model, document.firstOrdinal, end);
  });
}
