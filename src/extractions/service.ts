import type { BlobStore } from '../blob/blob-store.ts';
import { writeConfigVersion } from '../configs/store.ts';
import type { ParserPool } from '../content/parse/pool.ts';
import { type ParsedDocument, ParseError } from '../content/parse/types.ts';
import type { Database, Db } from '../db/database.ts';
import { AppError, invalidField, notFound } from '../errors.ts';
import type { FileService } from '../files/service.ts';
import { type FileRow, findVisibleFile, listFilesById } from '../files/store.ts';
import { newUuid } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Caller } from '../tenancy/caller.ts';
import { fieldId, findNamedOwners, pathId, requireCreateFor, unknownReference } from '../tenancy/references.ts';
import type { Owned } from '../tenancy/visible.ts';
import {
  type Destination,
  documentOutputName,
  type ExtractionBody,
  outputPath,
  readExtractionRequest,
} from './request.ts';
import * as store from './store.ts';

export type ExtractionDeps = { db: Database; blobs: BlobStore; parser: ParserPool; files: FileService };

/** An extraction with its outputs, and the files that they are. */
export type ExtractionView = {
  row: store.ExtractionRow;
  outputs: store.OutputRow[];
  files: Map<string, FileRow>;
};

export type ExtractionService = ReturnType<typeof createExtractionService>;

export function createExtractionService({ db, blobs, parser, files }: ExtractionDeps) {
  async function view(row: store.ExtractionRow): Promise<ExtractionView> {
    const outputs = await store.listOutputs(db, row.appId, row.id);
    const ids = outputs.flatMap((output) => (output.fileId === null ? [] : [output.fileId]));
    const rows = ids.length > 0 ? await listFilesById(db, row.appId, ids) : [];
    return { row, outputs, files: new Map(rows.map((file) => [file.id, file])) };
  }

  async function extractDocument(caller: Caller, owned: Owned, fileId: string, destination: Destination) {
    const source = await findVisibleFile(db, caller, fieldId('file', 'file', fileId));
    if (!source) throw unknownReference('file');
    if (source.size > limits.documentExtractionBytesMax)
      throw new AppError('file_too_large', 'Documents of up to 10 MB can be extracted.', {
        fields: [{ field: 'file', message: 'is larger than 10 MB' }],
      });
    const bytes = await blobs.readAll(source.blobKey, limits.documentExtractionBytesMax);
    const input = { bytes, filename: source.filename, contentType: source.contentType };
    const document = await parseOrRefuse(parser, input, caller.appId);
    const path = outputPath(destination.prefix, documentOutputName(source.filename), () => false);
    const contents = { bytes: Buffer.from(document.markdown), filename: path, contentType: 'text/markdown' };
    const id = newUuid();
    await files.write(caller, contents, owned, async (tx, file) => {
      if (destination.kind === 'config') await writeConfig(tx, owned, path, file);
      await store.insertExtraction(tx, caller, {
        ...owned,
        id,
        kind: 'document',
        state: 'done',
        destinationKind: destination.kind,
        destinationPath: destination.prefix ?? null,
        fileId: source.id,
        url: null,
        maxPages: null,
        options: {},
      });
      await store.insertOutput(tx, caller.appId, {
        id: newUuid(),
        extractionId: id,
        ordinal: 0,
        state: 'done',
        sourceUrl: null,
        title: storable(document.title) ?? null,
        metadata: documentMetadata(document),
        error: null,
        fileId: file.id,
      });
    });
    return id;
  }

  return {
    /** Runs a document extraction to its end; throws what keeps it from one, and then leaves nothing behind. */
    async create(caller: Caller, body: ExtractionBody): Promise<ExtractionView> {
      const request = readExtractionRequest(body);
      const owned = await resolveOwner(db, caller, body);
      if (request.kind !== 'document')
        throw new AppError('not_implemented', 'Links and sites cannot be extracted yet; documents can.');
      const id = await extractDocument(caller, owned, request.file, request.destination);
      const row = await store.findExtraction(db, caller, id);
      if (!row) throw notFound();
      return view(row);
    },

    async get(caller: Caller, id: string): Promise<ExtractionView> {
      const row = await store.findExtraction(db, caller, pathId('extraction', id));
      if (!row) throw notFound();
      return view(row);
    },
  };
}

/** Writes the text at its path as the owner's next version there. */
async function writeConfig(tx: Db, owned: Owned, virtualPath: string, file: FileRow): Promise<void> {
  await writeConfigVersion(tx, file, {
    owned,
    virtualPath,
    contentType: file.contentType,
    contentHash: file.checksum,
    fileId: file.id,
  });
}

/** The agent's, else the calling user's, else the org's that a server names, else the app's. */
async function resolveOwner(db: Db, caller: Caller, body: ExtractionBody): Promise<Owned> {
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

/** The document's text, or the failure as an answer: 422 `unsupported_content` or `extraction_failed`, 504 `timeout`. */
async function parseOrRefuse(
  parser: ParserPool,
  input: { bytes: Uint8Array; filename: string; contentType: string },
  lane: string,
): Promise<ParsedDocument> {
  try {
    return await parser.parse(input, { lane });
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    const fields = error.reason === 'timeout' ? [] : [{ field: 'file', message: error.message }];
    throw new AppError(error.reason, error.message, { fields, cause: error });
  }
}

/** What the file says about itself, for the output. */
function documentMetadata(document: ParsedDocument): Record<string, unknown> {
  const { title, language, pages, author, created, modified, attachments, kind } = document;
  const members = {
    kind,
    title: storable(title),
    language: storable(language),
    pages,
    author: storable(author),
    created,
    modified,
    attachments: attachments?.map(storable),
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** Text that Postgres takes: documents may hold anything. */
function storable(text: string | undefined): string | undefined {
  return text?.replaceAll('\0', '\u{fffd}').toWellFormed();
}
