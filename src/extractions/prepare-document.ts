import { writeConfigVersion } from '../configs/store.ts';
import type { ParserPool } from '../content/parse/pool/pool.ts';
import { type ParsedDocument, ParseError } from '../content/parse/types.ts';
import type { Db } from '../db/database.ts';
import type { FileService } from '../files/service.ts';
import { type FileRow, findVisibleFile } from '../files/store.ts';
import { AppError } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import { storableText } from '../lib/storable-text.ts';
import type { Caller } from '../tenancy/caller.ts';
import { requireQuotaLeft, usePages } from '../tenancy/quotas.ts';
import { fieldId, unknownReference } from '../tenancy/references.ts';
import type { Owned } from '../tenancy/visible.ts';
import { type ExtractionDeps, noDataYet, type PreparedExtraction } from './prepared.ts';
import { type Destination, documentOutputName, type ExtractionRequest, outputPath } from './request.ts';
import * as store from './store.ts';
import { startStructuring } from './structure/job.ts';
import type { Wanted } from './structure/prompts.ts';
import { insertPending, insertSchema } from './structure/store.ts';

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

/** Prepares a document, whose text is read and stored now. */
export async function prepareDocument(
  { db, blobs, parser, files }: ExtractionDeps,
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
  const results = await storeResults(files, caller, source.filename, destination, document);
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

/** Stores the text of the document and of each attachment that could be read. */
async function storeResults(
  files: FileService,
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

/** Starts extracting data from every text of a document when this transaction commits. */
async function startWithData(tx: Db, extraction: { appId: string; id: string }, wanted: Wanted): Promise<void> {
  await insertSchema(tx, extraction, wanted);
  const outputs = await store.listOutputs(tx, extraction.appId, extraction.id);
  const ids = outputs.flatMap(({ id, state }) => (state === 'done' ? [id] : []));
  await insertPending(tx, extraction, ids);
  await startStructuring(tx, extraction);
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
