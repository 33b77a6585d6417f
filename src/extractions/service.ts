import type { Static } from 'typebox';
import type { BlobStore } from '../blob/blob-store.ts';
import { writeConfigVersion } from '../configs/store.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { ParserPool } from '../content/parse/pool/pool.ts';
import { type ParsedDocument, ParseError } from '../content/parse/types.ts';
import { startCrawl } from '../crawls/jobs.ts';
import { normalizeUrl } from '../crawls/page-url.ts';
import { deleteCrawl, listLeftOut } from '../crawls/store.ts';
import type { Database, Db } from '../db/database.ts';
import { storableText } from '../db/text.ts';
import type { FileService } from '../files/service.ts';
import { type FileRow, findVisibleFile, listFilesById } from '../files/store.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { announceChange } from '../http/streams/sse.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import type { Llm } from '../llm/service.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import { requireQuotaLeft, usePages } from '../tenancy/quotas.ts';
import {
  fieldId,
  findAgent,
  findNamedOwners,
  pathId,
  requireCreateFor,
  unknownReference,
} from '../tenancy/references.ts';
import { mayChangeOwned, type Owned } from '../tenancy/visible.ts';
import {
  type Destination,
  documentOutputName,
  type ExtractionRequest,
  outputPath,
  readExtractionRequest,
} from './request.ts';
import type { extractionCreateSchema } from './schema.ts';
import * as store from './store.ts';
import { startStructuring } from './structure/job.ts';
import { pieceSchemaOf } from './structure/piece-schema.ts';
import { findRoom, type Wanted } from './structure/prompts.ts';
import type { Schemas } from './structure/schemas.ts';
import { type DataRow, findSchema, insertPending, insertSchema, listData } from './structure/store.ts';
import { schemaTooLarge } from './structure/structure-output.ts';
import { extractionTopic } from './topic.ts';
import { extractionConsumer } from './workflow.ts';

export type ExtractionDeps = {
  db: Database;
  blobs: BlobStore;
  parser: ParserPool;
  files: FileService;
  fetcher: Fetcher;
  llm: Pick<Llm, 'requireUsable' | 'contextTokens'>;
  schemas: Schemas;
  /** The size of the language model's context in tokens. */
  contextTokens: number;
};

/** An extraction with its outputs and their files. */
export type ExtractionView = {
  row: store.ExtractionRow;
  outputs: store.OutputRow[];
  files: Map<string, FileRow>;
  /** The data of outputs, by output id. */
  data: Map<string, DataRow>;
  wanted: Wanted | undefined;
  /** Skipped pages of a site, with the reason. */
  leftOut: { url: string; reason: string }[];
};

/** An extraction that is ready to be written. */
type PreparedExtraction = {
  /**
   * Writes the extraction in this transaction (for a document, with its output) and returns its uuid. May be retried
   * in another transaction.
   */
  commit(tx: Db): Promise<string>;
  /** Discards what was stored for an extraction that will not be written. */
  discard(): Promise<void>;
};

/** The document or one of its attachments, stored or failed. */
type Result = {
  /** Set for an attachment. */
  name: string | undefined;
  document?: ParsedDocument;
  error?: { code: string; message: string };
  path: string;
  bytes: number;
  stored?: Awaited<ReturnType<FileService['store']>>;
};

type ListFilter = { kind?: string | undefined; state?: string | undefined; agent?: string | undefined };

type UrlRequest = Exclude<ExtractionRequest, { kind: 'document' }>;

const leftOutShownMax = 100;
const noDataYet = { dataPending: 0, dataDone: 0, dataFailed: 0, dataPieces: 0, dataPiecesDone: 0 };

export type ExtractionService = ReturnType<typeof createExtractionService>;

export function createExtractionService(deps: ExtractionDeps) {
  const { db, blobs, parser, files, fetcher } = deps;

  /** Reads in one snapshot, so that progress and outputs agree during a crawl. */
  function view(caller: Caller, id: string): Promise<ExtractionView> {
    return db.begin('isolation level repeatable read read only', (tx) => readView(tx, caller, id));
  }

  async function readView(tx: Db, caller: Caller, id: string): Promise<ExtractionView> {
    const row = found(await store.findExtraction(tx, caller, id));
    const outputs = await store.listOutputs(tx, row.appId, row.id);
    const isStructured = row.dataPending !== null;
    const data = isStructured ? await listData(tx, row) : [];
    const wanted = isStructured ? await findSchema(tx, row) : undefined;
    const ids = [...outputs, ...data].flatMap(({ fileId }) => (fileId === null ? [] : [fileId]));
    const rows = ids.length > 0 ? await listFilesById(tx, row.appId, ids) : [];
    const leftOut = row.kind === 'site' ? await listLeftOut(tx, row.appId, row.id, leftOutShownMax) : [];
    const dataById = new Map(data.map((each) => [each.outputId, each]));
    return { row, outputs, files: new Map(rows.map((file) => [file.id, file])), data: dataById, wanted, leftOut };
  }

  /** Prepares a link or a site. The job starts when the transaction commits. */
  async function prepareCrawl(caller: Caller, owned: Owned, request: UrlRequest): Promise<PreparedExtraction> {
    const { settings, destination, wanted } = request;
    const checked = fetcher.check(settings.startUrl);
    if (!checked.ok) throw invalidField('url', checked.problem);
    if (settings.ignoreRobots && !canSeeWholeApp(caller))
      throw new AppError('forbidden', 'Ignoring robots.txt requires a secret key or a developer token.', {
        fields: [{ field: 'ignore_robots', message: 'requires a secret key' }],
      });
    await requireQuotaLeft(db, caller, 'pages');
    const id = newUuid();
    const commit = async (tx: Db) => {
      await store.insertExtraction(tx, caller, {
        ...owned,
        id,
        kind: request.kind,
        state: 'running',
        destinationKind: destination.kind,
        destinationPath: destination.prefix ?? null,
        fileId: null,
        url: settings.startUrl,
        maxPages: settings.maxPages,
        options: settings,
        ...(wanted && noDataYet),
      });
      if (wanted) await insertSchema(tx, { appId: caller.appId, id }, wanted);
      // Pages of a site appear under several spellings of a URL. A link is requested exactly as given.
      checked.url.hash = '';
      const startUrl = (request.kind === 'site' && normalizeUrl(checked.url.href)) || checked.url.href;
      await startCrawl(tx, {
        appId: caller.appId,
        sandboxId: caller.sandboxId,
        id,
        consumer: extractionConsumer,
        collectionId: null,
        settings: { ...settings, startUrl },
      });
      await store.updateProgress(
        tx,
        caller.appId,
        id,
        { discovered: 1, done: 0, failed: 0, waiting: 0 },
        { outputs: 0, bytes: 0 },
      );
      return id;
    };
    return { commit, discard: async () => {} };
  }

  async function prepareDocument(
    caller: Caller,
    owned: Owned,
    { file: fileId, destination, wanted }: Extract<ExtractionRequest, { kind: 'document' }>,
    signal: AbortSignal | undefined,
  ): Promise<PreparedExtraction> {
    const source = await findVisibleFile(db, caller, fieldId('file', 'file', fileId));
    if (!source) throw unknownReference('file');
    if (source.size > limits.documentExtractionBytesMax)
      throw new AppError('file_too_large', 'The document is larger than 10 MB, the limit of an extraction.', {
        fields: [{ field: 'file', message: 'is larger than 10 MB' }],
      });
    await requireQuotaLeft(db, caller, 'pages');
    const bytes = await blobs.readAll(source.blobKey, limits.documentExtractionBytesMax);
    const input = { bytes, filename: source.filename, contentType: source.contentType };
    const document = await parseOrRefuse(parser, input, {
      lane: caller.appId,
      parts: 'apart',
      ...(signal ? { signal } : {}),
    });
    const results = await storeResults(caller, source.filename, destination, document);
    const written = results.flatMap(({ stored }) => stored ?? []);
    const discard = async () => {
      for (const stored of written) await stored.discard();
    };
    const id = newUuid();
    const commit = async (tx: Db) => {
      await store.insertExtraction(tx, caller, {
        ...owned,
        id,
        kind: 'document',
        // The text is complete. Its data is extracted in the background.
        state: wanted ? 'running' : 'done',
        destinationKind: destination.kind,
        destinationPath: destination.prefix ?? null,
        fileId: source.id,
        url: null,
        maxPages: null,
        options: {},
        outputCount: written.length,
        outputBytes: results.reduce((sum, { bytes }) => sum + bytes, 0),
        ...(wanted && noDataYet),
      });
      for (const [ordinal, result] of results.entries()) {
        const add = (file?: FileRow) => insertResult(tx, caller.appId, { extractionId: id, ordinal, ...result }, file);
        if (result.stored === undefined) await add();
        else
          await result.stored.commit(tx, owned, async (_tx, file) => {
            if (destination.kind === 'config') await writeConfig(tx, owned, result.path, file);
            await add(file);
          });
      }
      await usePages(tx, caller, written.length);
      if (wanted) await startWithData(tx, { appId: caller.appId, id }, wanted);
      return id;
    };
    return { commit, discard };
  }

  /** Starts extracting data from every text of a document when this transaction commits. */
  async function startWithData(tx: Db, extraction: { appId: string; id: string }, wanted: Wanted): Promise<void> {
    await insertSchema(tx, extraction, wanted);
    const outputs = await store.listOutputs(tx, extraction.appId, extraction.id);
    const ids = outputs.flatMap(({ id, state }) => (state === 'done' ? [id] : []));
    await insertPending(tx, extraction, ids);
    await startStructuring(tx, extraction);
  }

  /** Stores the text of the document and of each attachment that could be read. */
  async function storeResults(
    caller: Caller,
    filename: string,
    destination: Destination,
    { parts = [], ...document }: ParsedDocument,
  ): Promise<Result[]> {
    const name = documentOutputName(filename);
    const paths = new Set<string>();
    const results: Result[] = [];
    try {
      for (const part of [{ name: undefined, document }, ...parts]) {
        // Attachments go into a folder for their mail, because attachments of different mails often have the same
        // names.
        const own = part.name && `${name.replace(/\.md$/, '')}/${documentOutputName(part.name)}`;
        const path = outputPath(destination.prefix, own ?? name, (one) => paths.has(one));
        paths.add(path);
        const text = part.document && Buffer.from(part.document.markdown);
        const contents = text && { bytes: text, filename: path, contentType: 'text/markdown' };
        const stored = contents && (await files.store(caller, contents));
        results.push({ ...part, path, bytes: text?.length ?? 0, ...(stored ? { stored } : {}) });
      }
    } catch (error) {
      for (const { stored } of results) await stored?.discard();
      throw error;
    }
    return results;
  }

  /** 501 without a language model, 422 for a schema that cannot be used, 429 if the app's tokens are used up. */
  async function requireStructuring(caller: Caller, wanted: Wanted): Promise<void> {
    await deps.llm.requireUsable(caller, wanted.model ?? undefined);
    await deps.schemas.requireUsable(caller.appId, wanted.schema);
    const own = wanted.model === null ? undefined : await deps.llm.contextTokens(caller, wanted.model);
    if (findRoom(wanted, pieceSchemaOf(wanted.schema).schema, own ?? deps.contextTokens) === undefined)
      throw invalidField('schema', schemaTooLarge);
    await requireQuotaLeft(db, caller, 'tokens');
  }

  /** Does the slow part of an extraction: for a document, reading it. Throws if that fails. */
  async function prepare(
    caller: Caller,
    body: Static<typeof extractionCreateSchema>,
    signal?: AbortSignal,
  ): Promise<PreparedExtraction> {
    const request = readExtractionRequest(body);
    const owned = await resolveOwner(db, caller, body);
    if (request.wanted) await requireStructuring(caller, request.wanted);
    return request.kind === 'document'
      ? prepareDocument(caller, owned, request, signal)
      : prepareCrawl(caller, owned, request);
  }

  return {
    prepare,

    /** Runs a document extraction. If it throws, it leaves nothing behind. */
    async create(caller: Caller, body: Static<typeof extractionCreateSchema>): Promise<ExtractionView> {
      const prepared = await prepare(caller, body);
      try {
        // Read before the commit: the job may end before the response is sent, and the client expects to poll.
        return await db.begin(async (tx) => readView(tx, caller, await prepared.commit(tx)));
      } catch (error) {
        if (error instanceof AppError) await prepared.discard();
        throw error;
      }
    },

    get: (caller: Caller, id: string): Promise<ExtractionView> => view(caller, pathId('extraction', id)),

    /** A page of the extractions visible to the caller, without their outputs. */
    async list(caller: Caller, filter: ListFilter, page: PageRequest): Promise<[store.ExtractionRow[], number]> {
      const { agent, ...rest } = filter;
      const agentId = agent === undefined ? undefined : fieldId('agent', 'agent', agent);
      return store.listExtractions(db, caller, { ...rest, agentId }, page);
    },

    /** Cancels and deletes the extraction. The files that it wrote are kept. */
    async remove(caller: Caller, id: string): Promise<void> {
      const row = found(await store.findExtraction(db, caller, pathId('extraction', id)));
      await requireDelete(db, caller, row);
      await db.begin(async (tx) => {
        await deleteCrawl(tx, row.appId, row.id);
        await store.deleteExtraction(tx, row.appId, row.id);
        await announceChange(tx, extractionTopic, row.appId, row.id);
      });
    },

    /** The uuid of an extraction that the caller may see; 404 otherwise. */
    async follow(caller: Caller, id: string): Promise<string> {
      const row = found(await store.findExtraction(db, caller, pathId('extraction', id)));
      return row.id;
    },
  };
}

/** 403 unless the caller may delete resources of this extraction's owners. */
async function requireDelete(db: Db, caller: Caller, row: store.ExtractionRow): Promise<void> {
  if (canSeeWholeApp(caller)) return;
  const agent = row.agentId === null ? undefined : await findAgent(db, caller, row.agentId);
  if (!mayChangeOwned(caller, row, 'delete', agent))
    throw new AppError('forbidden', 'You may not delete this extraction.');
}

/** Writes the text as the next version of the config at the owner's path. */
async function writeConfig(tx: Db, owned: Owned, virtualPath: string, file: FileRow): Promise<void> {
  await writeConfigVersion(tx, file, {
    owned,
    virtualPath,
    contentType: file.contentType,
    contentHash: file.checksum,
    fileId: file.id,
  });
}

/** The owner: the agent, otherwise the calling user, otherwise the org named by a server, otherwise the app. */
async function resolveOwner(db: Db, caller: Caller, body: Static<typeof extractionCreateSchema>): Promise<Owned> {
  const named = await findNamedOwners(db, caller, { org: body.org, agent: body.agent });
  const none: Owned = { orgId: null, teamId: null, userId: null, agentId: null };
  if (named.agent) {
    if (named.org && named.org.id !== named.agent.orgId)
      throw invalidField('org', 'is not the organisation of the agent');
    requireCreateFor(caller, { ...none, agentId: named.agent.id }, named.agent);
    return { ...none, agentId: named.agent.id, orgId: named.agent.orgId };
  }
  const own = caller.kind === 'user' || caller.kind === 'agent' ? (caller.orgId ?? null) : null;
  const orgId = named.org?.id ?? own;
  if (caller.kind === 'user') return { ...none, userId: caller.userId, orgId };
  if (caller.kind === 'agent') return { ...none, agentId: caller.agentId, orgId };
  return { ...none, orgId };
}

/** Extracts the document's text. Throws 422 `unsupported_content` or `extraction_failed`, or 504 `timeout`. */
async function parseOrRefuse(
  parser: ParserPool,
  input: { bytes: Uint8Array; filename: string; contentType: string },
  options: { lane: string; parts: 'apart'; signal?: AbortSignal },
): Promise<ParsedDocument> {
  try {
    return await parser.parse(input, options);
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    const fields = error.reason === 'timeout' ? [] : [{ field: 'file', message: error.message }];
    throw new AppError(error.code, error.message, { fields, cause: error });
  }
}

function insertResult(
  tx: Db,
  appId: string,
  { extractionId, ordinal, name, document, error }: Result & { extractionId: string; ordinal: number },
  file: FileRow | undefined,
) {
  return store.insertOutputs(tx, appId, [
    {
      id: newUuid(),
      extractionId,
      ordinal,
      sourceUrl: null,
      fileId: file?.id ?? null,
      name: null,
      state: document === undefined ? 'failed' : 'done',
      title: storableText(document?.title ?? name) ?? null,
      metadata: {
        ...(document === undefined ? {} : documentMetadata(document)),
        ...(name === undefined ? {} : { attachment: storableText(name) }),
      },
      page: document === undefined ? null : outputPage(document),
      error: error ?? null,
    },
  ]);
}

/** The members of an output that describe its document, other than the metadata. */
function outputPage({ page, ocr, truncated }: ParsedDocument) {
  return { ...page, ...(ocr ? { ocr } : {}), truncated: truncated !== undefined };
}

/** The metadata of the output's file. */
function documentMetadata(document: ParsedDocument): Record<string, unknown> {
  const { title, language, pages, author, created, modified, attachments, truncated, kind, reader } = document;
  const members = {
    kind,
    reader,
    title: storableText(title),
    language: storableText(language),
    pages,
    author: storableText(author),
    created,
    modified,
    attachments: attachments?.map(storableText),
    truncated,
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
