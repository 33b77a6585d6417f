import type { Static } from 'typebox';
import type { Database, Transaction } from '../../db/database.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { AppError, found } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { fieldId, pathId } from '../../tenancy/references.ts';
import type { Grant } from '../../tenancy/visible.ts';
import { removeDocument } from '../index/indexing.ts';
import { lockIndex, type SourceKey } from '../index/store.ts';
import type { PushInput } from '../ingestion/push.ts';
import type { IngestService } from '../ingestion/service.ts';
import { type IngestionView, insertPullRemoval } from '../ingestion/store.ts';
import type { aclChangeSchema } from '../permissions/schema.ts';
import type { Permissions } from '../permissions/service.ts';
import type { documentContentQuery, documentListQuery } from '../schema.ts';
import type { SourceService } from '../sources/service.ts';
import { deleteItemsOfDocument } from '../syncs/store.ts';
import { type DocumentContent, sliceText } from './slices.ts';
import type { DocumentView } from './store.ts';
import * as store from './store.ts';

type DocumentDeps = {
  db: Database;
  sources: SourceService;
  permissions: Permissions;
  ingestions: IngestService;
};

/** A document, with its grants if it is restricted and the caller may change them. */
type ShownDocument = { document: DocumentView; grants: Grant[] | undefined };

type DocumentReads = {
  show(caller: Caller, id: string): Promise<ShownDocument>;
  list(caller: Caller, query: Static<typeof documentListQuery>, page: PageRequest): Promise<[ShownDocument[], number]>;
  /** The text of a document by its UUID; undefined if it is not visible to the caller or has more bytes. */
  findText(caller: Caller, id: string, bytesMax: number): Promise<store.DocumentText | undefined>;
  /** Whether the caller sees all of these documents, by their UUIDs. */
  seesAll(caller: Caller, ids: readonly string[]): Promise<boolean>;
  listChunks(caller: Caller, id: string, page: PageRequest): Promise<[store.ChunkRow[], number]>;
  /** Returns the whole text, or a slice of it if `offset` or `limit` is given. */
  content(
    caller: Caller,
    id: string,
    query: Static<typeof documentContentQuery>,
  ): Promise<DocumentContent & { document: DocumentView }>;
};

type DocumentService = DocumentReads & {
  /** Changes the readers of a document; undefined lets every reader of its source see it. */
  setReaders(caller: Caller, id: string, input: Static<typeof aclChangeSchema> | undefined): Promise<ShownDocument>;
  /** Starts replacing a document's content, or its title or metadata alone. What is absent keeps its value. */
  update(caller: Caller, id: string, input: PushInput): Promise<IngestionView>;
  remove(caller: Caller, id: string): Promise<void>;
};

export function createDocumentService(deps: DocumentDeps): DocumentService {
  const { db, sources, permissions, ingestions } = deps;
  const reads = createDocumentReads(deps);

  async function getChangeable(caller: Caller, id: string) {
    const document = await getDocument(db, caller, id);
    const source = await sources.getForChange(db, caller, formatId('source', document.sourceId), 'update');
    return { document, source };
  }

  return {
    ...reads,

    async setReaders(caller, id, input) {
      await permissions.change(caller, id, input);
      return reads.show(caller, id);
    },

    async update(caller, id, input) {
      const { document, source } = await getChangeable(caller, id);
      requireOneContent(input);
      return ingestions.replaceDocument(caller, source, document, input);
    },

    async remove(caller, id) {
      const { document, source } = await getChangeable(caller, id);
      found(await db.begin((tx) => removeFromSource(tx, { appId: source.appId, sourceId: source.id }, document)));
    },
  };
}

async function getDocument(db: Database, caller: Caller, id: string): Promise<DocumentView> {
  return found(await store.findDocument(db, caller, pathId('document', id)));
}

function createDocumentReads({ db, permissions }: DocumentDeps): DocumentReads {
  return {
    async show(caller, id) {
      const document = await getDocument(db, caller, id);
      return { document, grants: (await permissions.listGrants(db, caller, [document])).get(document.id) };
    },

    async list(caller, query, page) {
      const [rows, total] = await store.listDocuments(
        db,
        caller,
        {
          title: query.q,
          sources: query.source?.map((text) => fieldId('source', 'source', text)),
          installations: query.installation?.map((text) => fieldId('installation', 'installation', text)),
          agents: query.agent?.map((text) => fieldId('agent', 'agent', text)),
        },
        page,
      );
      const grants = await permissions.listGrants(db, caller, rows);
      return [rows.map((document) => ({ document, grants: grants.get(document.id) })), total];
    },

    findText: (caller, id, bytesMax) => store.findVisibleText(db, caller, id, bytesMax),

    async seesAll(caller, ids) {
      return ids.length === 0 || (await store.countVisible(db, caller, ids)) === ids.length;
    },

    async listChunks(caller, id, page) {
      const document = await getDocument(db, caller, id);
      return [await store.listChunkTexts(db, document, page), document.chunkCount];
    },

    async content(caller, id, query) {
      const document = await getDocument(db, caller, id);
      const read = {
        all: async () => found(await store.readText(db, document.appId, document.id)),
        part: (start: number, length: number) => store.readTextSlice(db, document.appId, document.id, start, length),
      };
      return { document, ...(await sliceText(read, document, query)) };
    },
  };
}

/** Removes a document so that neither a pull nor a connector in progress brings it back. */
async function removeFromSource(tx: Transaction, key: SourceKey, document: DocumentView): Promise<boolean> {
  if (!(await lockIndex(tx, key))) return false;
  await insertPullRemoval(tx, key.appId, key.sourceId, document.externalId ?? document.sourceUrl);
  await deleteItemsOfDocument(tx, key, document.id);
  return removeDocument(tx, key, document.id);
}

/** 422 unless there is one content, or a title or metadata alone. */
function requireOneContent({ content, file, acl, title, metadata }: PushInput): void {
  const given = [content, file].filter((each) => each !== undefined).length;
  const isNamed = acl === undefined && (title !== undefined || metadata !== undefined);
  if (given === 1 || (given === 0 && isNamed)) return;
  const message = 'exactly one of content and file is required';
  throw new AppError('invalid_parameters', 'content, file: exactly one of the two is required', {
    fields: ['content', 'file'].map((field) => ({ field, message })),
  });
}
