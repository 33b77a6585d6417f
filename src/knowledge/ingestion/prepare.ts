import { hash } from 'node:crypto';
import type { HeadingFragments } from '../../content/fragments.ts';
import type { ParserPool, ReadAndPrepared } from '../../content/parse/pool/pool.ts';
import { type OcrReport, ParseError } from '../../content/parse/types.ts';
import { type PreparedText, type PrepareTerms, titleOf } from '../../content/prepare.ts';
import type { Db } from '../../db/database.ts';
import { defined } from '../../lib/defined.ts';
import { newUuid } from '../../lib/ids.ts';
import { storableText } from '../../lib/storable-text.ts';
import { quotaError } from '../../tenancy/quotas.ts';
import { type DocumentRow, findDocumentById, readTextWithFragments } from '../documents/store.ts';
import {
  type DocumentFacts,
  embedChunks,
  type KnownVectors,
  type PreparedDocument,
  prepareDocument,
  prepareTerms,
  readKnownVectors,
  type TextLanguage,
} from '../index/indexing.ts';
import { payloadLanguage } from '../kinds/payload.ts';
import type { SourceRow } from '../sources/store.ts';
import type { KnowledgeWorkDeps } from './deps.ts';
import type { IngestionError } from './store.ts';

export const documentBytesMax = 100 * 1024 * 1024;

/** Bytes to ingest, for a new document or as the next version of one. */
export type Input = {
  documentId: string | null;
  bytes: Buffer;
  /** True when the client sent the bytes as text: there is nothing to parse. */
  isText: boolean;
  filename: string | null;
  contentType: string | null;
  title: string | null;
  metadata: Record<string, unknown> | null;
  fileId: string | null;
  /** The list of grants of the document, or null for every reader; undefined keeps those of an earlier version. */
  aclId?: string | null | undefined;
  sourceUrl?: string | null;
};

/** The result of the part of an ingestion that happens outside transactions. */
export type PreparedInput = {
  facts: DocumentFacts;
  prepared: PreparedDocument;
  /** The space of the vectors, and whether the embedder is in this process. */
  model: string;
  isLocal: boolean;
  vectors: KnownVectors;
  /** Whether it replaces a document with the same id. */
  replaces: boolean;
  embedded: number;
  pages: number;
  bytes: number;
  /** Statistics of the text recognised in pictures. */
  ocr?: OcrReport;
};

/** A document's text with its metadata. */
type TextInput = Pick<Input, 'documentId' | 'title' | 'metadata' | 'contentType' | 'fileId' | 'aclId'> & {
  text: string;
  bytesHash: Buffer;
  bytes: number;
  pages: number;
  sourceUrl: string | null;
  seenBy: string | null;
  /** The fragments that lead to the headings of a web page. */
  fragments?: HeadingFragments;
  /** Descriptions of the parts of the document that are missing from the text. */
  truncated: string[] | undefined;
  /** The extractor that read the document. */
  reader: string | undefined;
  signal?: AbortSignal;
  /** The document that it replaces, if that was read already. */
  known?: Known;
  /** What the task that read the text has prepared. */
  prepared?: PreparedText | undefined;
};

/** The document that is replaced, and its vectors of the embedder. */
type Known = { old: DocumentRow | undefined; vectors: KnownVectors };

async function readKnown(
  { db, embedder }: Pick<KnowledgeWorkDeps, 'db' | 'embedder'>,
  source: SourceRow,
  documentId: string | null,
): Promise<Known> {
  const old = documentId === null ? undefined : await findDocumentById(db, source.appId, documentId);
  const known = old && (await readKnownVectors(db, old)).get(embedder.model);
  return { old, vectors: known ?? new Map() };
}

function languageOf({ language }: Pick<KnowledgeWorkDeps, 'language'>, source: SourceRow): TextLanguage {
  return { language: payloadLanguage(source.payload), otherwise: language };
}

/** Chunks the text and, with an embedder in this process, embeds the chunks that have no vector yet. */
export async function prepareInput(
  deps: Pick<KnowledgeWorkDeps, 'db' | 'embedder' | 'language' | 'parser'>,
  source: SourceRow,
  input: TextInput,
): Promise<PreparedInput> {
  const { embedder } = deps;
  const { old, vectors } = input.known ?? (await readKnown(deps, source, input.documentId));
  const { embedded: tokens, ...prepared } = await prepareDocument(
    deps,
    {
      text: input.text,
      fragments: input.fragments,
      title: input.title ?? undefined,
      language: languageOf(deps, source),
      known: vectors,
      lane: source.appId,
      prepared: input.prepared,
    },
    input.signal,
  );
  const embedded = embedder.local
    ? tokens + (await embedChunks(embedder, source.appId, prepared, vectors, input.signal))
    : tokens;
  return {
    facts: {
      id: input.documentId ?? newUuid(),
      title: input.title === null ? null : storableText(input.title),
      fileId: input.fileId,
      metadata: {
        ...(input.metadata ?? { ...old?.metadata, truncated: undefined, reader: undefined }),
        ...defined({ truncated: input.truncated, reader: input.reader }),
      },
      contentType: input.contentType,
      bytesHash: input.bytesHash,
      sourceUrl: input.sourceUrl,
      seenBy: input.seenBy,
      aclId: input.aclId,
    },
    prepared,
    ...{ model: embedder.model, isLocal: embedder.local },
    vectors,
    replaces: input.documentId !== null,
    embedded,
    pages: input.pages,
    bytes: input.bytes,
  };
}

/** Documents of one commit are listed by their ids, so new ones get theirs in the order in which they are written. */
export function withNewId(ready: PreparedInput): PreparedInput {
  return ready.replaces ? ready : { ...ready, facts: { ...ready.facts, id: newUuid() } };
}

/** The text that a document has, to be written again with another title or other metadata, and the version that had it. */
export async function prepareAgain(
  deps: Pick<KnowledgeWorkDeps, 'db' | 'embedder' | 'language' | 'parser'>,
  source: SourceRow,
  { documentId, title, metadata }: { documentId: string; title: string | null; metadata: Input['metadata'] },
  signal: AbortSignal,
): Promise<{ ready: PreparedInput; version: number }> {
  const document = await findDocumentById(deps.db, source.appId, documentId);
  const stored = await readTextWithFragments(deps.db, source.appId, documentId);
  if (!document || !stored) throw new DocumentDeleted();
  const { contentType, fileId, bytesHash, sourceUrl, seenBy, version } = document;
  const { truncated, reader } = document.metadata as Pick<TextInput, 'truncated' | 'reader'>;
  const ready = await prepareInput(deps, source, {
    ...{ documentId, contentType, fileId, bytesHash, sourceUrl, seenBy, truncated, reader, metadata, signal },
    title: title ?? document.title,
    text: stored.content.toString(),
    bytes: stored.content.length,
    pages: 1,
    ...(stored.fragments && { fragments: stored.fragments }),
  });
  return { ready, version };
}

type ReadOptions = { signal: AbortSignal; onProgress?: (done: number, total: number) => void };

/** Parses the input, chunks its text and embeds the chunks: a short text in one task of a parser. Throws ParseError. */
export async function readDocument(
  deps: Pick<KnowledgeWorkDeps, 'db' | 'embedder' | 'language' | 'parser'>,
  source: SourceRow,
  input: Input,
  options: ReadOptions,
): Promise<PreparedInput> {
  const known = await readKnown(deps, source, input.documentId);
  const { title, filename } = input;
  const language = languageOf(deps, source);
  const prepare = prepareTerms(deps.embedder, { title: title ?? undefined, language, known: known.vectors });
  const parsed = await parseInput(deps.parser, source.appId, input, { ...options, prepare });
  const ready = await prepareInput(deps, source, {
    ...input,
    text: parsed.markdown,
    title: titleOf(title, parsed.title, filename) ?? null,
    bytesHash: hash('sha256', input.bytes, 'buffer'),
    bytes: input.bytes.length,
    pages: parsed.pages ?? 1,
    truncated: parsed.truncated,
    reader: parsed.reader,
    sourceUrl: input.sourceUrl ?? null,
    seenBy: null,
    signal: options.signal,
    known,
    prepared: parsed.prepared,
  });
  return parsed.ocr === undefined ? ready : { ...ready, ocr: parsed.ocr };
}

type ParsedText = Pick<ReadAndPrepared, 'markdown' | 'title' | 'pages' | 'truncated' | 'reader' | 'ocr' | 'prepared'>;

async function parseInput(
  parser: ParserPool,
  lane: string,
  { bytes, isText, filename, contentType }: Input,
  options: ReadOptions & { prepare: PrepareTerms },
): Promise<ParsedText> {
  if (isText) return { markdown: bytes.toString() };
  const named = { ...(filename === null ? {} : { filename }), ...(contentType === null ? {} : { contentType }) };
  return parser.parse({ bytes, ...named }, { lane, patient: true, ...options });
}

/** A failure of the document itself, as the ingestion reports it; undefined for any other error. */
export function describeFailure(error: unknown): IngestionError | undefined {
  if (error instanceof ParseError) return { code: error.reason, message: error.message };
  if (error instanceof DocumentDeleted) return { code: 'not_found', message: error.message };
  const overQuota = quotaError(error);
  if (overQuota !== undefined) return { code: overQuota.code, message: overQuota.message };
  if (error instanceof Error && error.name === 'BlobTooLarge')
    return { code: 'file_too_large', message: `A document can have at most ${documentBytesMax} bytes.` };
  if (error instanceof Error && error.name === 'BlobMissing')
    return { code: 'extraction_failed', message: 'The contents of the file are missing.' };
  return undefined;
}

/** Somebody else has written the document meanwhile. */
export class ChangedMeanwhile extends Error {}

/** Throws if the version that this transaction has just replaced is not the one that was read. */
export async function requireNext(tx: Db, appId: string, documentId: string, read: number): Promise<void> {
  const now = await findDocumentById(tx, appId, documentId);
  if (now === undefined || now.version > read + 1) throw new ChangedMeanwhile();
}

/** The document to be replaced was deleted meanwhile. */
export class DocumentDeleted extends Error {
  constructor() {
    super('The document was deleted during its replacement.');
    this.name = 'DocumentDeleted';
  }
}
