import type { Database, Db, Transaction } from '../../db/database.ts';
import type { Keyset, KeysetPage } from '../../db/keyset.ts';
import { findVisibleFiles } from '../../files/store.ts';
import { AppError, found, notFound } from '../../lib/errors.ts';
import { formatId, parseId } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { requireQuotaLeft } from '../../tenancy/quotas.ts';
import { pathId } from '../../tenancy/references.ts';
import { updateDocumentMetadata } from '../documents/store.ts';
import { removeDocument } from '../index/indexing.ts';
import { lockIndex, type SourceKey } from '../index/store.ts';
import { documentBytesMax } from '../ingestion/prepare.ts';
import type { IngestService } from '../ingestion/service.ts';
import { findIngestion, type IngestionRow, listItems } from '../ingestion/store.ts';
import type { SourceService, VisibleSource } from '../sources/service.ts';
import * as store from './store.ts';

/** The members of metadata that are strings, numbers or booleans. */
type Attributes = Record<string, string | number | boolean>;

/** A file to attach, and the attributes of its document; undefined keeps the current ones. */
type FileToAttach = { file: string; attributes?: Attributes | undefined };

export type Counts = Record<store.AttachmentStatus, number>;

/** A source with the counts and bytes of its files. */
export type Tallied = { counts: Counts; bytes: number };

export type Batch = { ingestion: IngestionRow; counts: Counts };

const sourcesAtOnce = 100;

/**
 * The files of a source of documents: attaching a file creates a document from it. Only the documents and the items of
 * ingestions are stored.
 */
export function createAttachmentService(deps: { db: Database; sources: SourceService; ingestions: IngestService }) {
  const { db, sources, ingestions } = deps;

  /** Runs a change of the attachments of a source, one at a time. */
  function change<T>(db: Db, source: VisibleSource, run: (tx: Transaction, key: SourceKey) => Promise<T>): Promise<T> {
    const key = { appId: source.appId, sourceId: source.id };
    return db.begin(async (tx) => {
      found(await lockIndex(tx, key));
      return run(tx, key);
    }) as Promise<T>;
  }

  /** Returns the ids of the files. Throws unless each is visible to the caller and small enough for a document. */
  async function requireFiles(db: Db, caller: Caller, files: readonly FileToAttach[]): Promise<string[]> {
    const ids = files.map(({ file }) => pathId('file', file));
    const visible = new Map((await findVisibleFiles(db, caller, ids)).map((row) => [row.id, row]));
    for (const id of ids) {
      const file = found(visible.get(id));
      if (file.size > documentBytesMax)
        throw new AppError('file_too_large', `Files may have at most ${documentBytesMax} bytes.`);
    }
    return ids;
  }

  /** Deletes failed attempts, after ending those that no process continues. Returns their number. */
  async function forget(tx: Transaction, key: SourceKey, files: readonly string[]): Promise<number> {
    for (const id of await store.listStuckIngestions(tx, key, files)) await ingestions.cancel(tx, key.appId, id);
    return store.deleteFailedItems(tx, key, files);
  }

  async function getAttachment(db: Db, caller: Caller, key: SourceKey, file: string): Promise<store.Attachment> {
    return found(await store.findAttachment(db, caller, key, file));
  }

  async function findBatch(caller: Caller, source: VisibleSource, id: string): Promise<IngestionRow> {
    const row = await findIngestion(db, caller, pathId('ingestion', id));
    if (row === undefined || row.sourceId !== source.id || row.kind !== 'batch') throw notFound();
    return row;
  }

  async function describeBatch(db: Db, ingestion: IngestionRow): Promise<Batch> {
    const { items } = ingestion.metadata as { items?: { error?: { code: string } }[] };
    const isStuck = await store.isIngestionStuck(db, ingestion.appId, ingestion.id);
    const pending = isStuck ? 'failed' : 'in_progress';
    const statuses = items
      ? items.map(({ error }) => statusOf(error))
      : (await listItems(db, ingestion.appId, ingestion.id)).map(({ state, result }) =>
          state === 'pending' ? pending : statusOf(result?.error as { code: string } | undefined),
        );
    const counts = noCounts();
    for (const status of statuses) counts[status] += 1;
    return { ingestion: isStuck ? { ...ingestion, status: 'failed' } : ingestion, counts };
  }

  return {
    /** Attaches one file. If it is already attached, only its attributes change, if given. */
    async attach(caller: Caller, source: VisibleSource, given: FileToAttach): Promise<store.Attachment> {
      const [file = ''] = await requireFiles(db, caller, [given]);
      await requireQuotaLeft(db, source, 'documents');
      return change(db, source, async (tx, key) => {
        const before = await store.findAttachment(tx, caller, key, file);
        if (before?.status === 'in_progress') {
          if (given.attributes !== undefined) throw inProgress();
        } else if (before?.documentId) {
          if (given.attributes !== undefined) await writeAttributes(tx, key, before, given.attributes);
        } else {
          await forget(tx, key, [file]);
          await ingestions.ingestFiles(tx, source, 'push', [{ file, documentId: null, metadata: given.attributes }]);
        }
        return getAttachment(tx, caller, key, file);
      });
    },

    /** Attaches files in one ingestion. Documents of files that are already attached are created again. */
    async attachBatch(db: Db, caller: Caller, source: VisibleSource, given: readonly FileToAttach[]): Promise<Batch> {
      const files = await requireFiles(db, caller, given);
      await requireQuotaLeft(db, source, 'documents');
      return change(db, source, async (tx, key) => {
        await forget(tx, key, files);
        const items = [];
        for (const [i, file] of files.entries()) {
          const before = await store.findAttachment(tx, caller, key, file);
          if (before?.status === 'in_progress') throw inProgress();
          const { attributes } = given[i] ?? {};
          const metadata = attributes && { ...keptMembers(before), ...attributes };
          items.push({ file, documentId: before?.documentId ?? null, metadata });
        }
        return describeBatch(tx, await ingestions.ingestFiles(tx, source, 'batch', items));
      });
    },

    get: (caller: Caller, source: VisibleSource, id: string): Promise<store.Attachment> =>
      getAttachment(db, caller, { appId: source.appId, sourceId: source.id }, attachedId(id)),

    list: (
      caller: Caller,
      source: VisibleSource,
      keyset: Keyset,
      status: store.AttachmentStatus | undefined,
    ): Promise<KeysetPage<store.Attachment>> =>
      store.listAttachments(db, caller, { appId: source.appId, sourceId: source.id }, keyset, { status }),

    async tally(caller: Caller, sourceIds: readonly string[]): Promise<Map<string, Tallied>> {
      const tallies = new Map(sourceIds.map((id): [string, Tallied] => [id, { counts: noCounts(), bytes: 0 }]));
      for (const { sourceId, status, count, bytes } of await store.tallyAttachments(db, caller, sourceIds)) {
        const tally = tallies.get(sourceId);
        if (tally === undefined) continue;
        tally.counts[status] = count;
        tally.bytes += bytes;
      }
      return tallies;
    },

    /** Replaces the attributes. 409 while the file is being processed. */
    setAttributes: (
      caller: Caller,
      source: VisibleSource,
      id: string,
      attributes: Attributes,
    ): Promise<store.Attachment> =>
      change(db, source, async (tx, key) => {
        const before = await getAttachment(tx, caller, key, attachedId(id));
        if (before.status === 'in_progress') throw inProgress();
        await writeAttributes(tx, key, before, attributes);
        return getAttachment(tx, caller, key, before.id);
      }),

    /** Removes the documents of a file from the source; the file stays. 409 while it is being processed. */
    detach: (caller: Caller, source: VisibleSource, id: string): Promise<void> =>
      change(db, source, async (tx, key) => {
        const file = attachedId(id);
        const { status } = await getAttachment(tx, caller, key, file);
        if (status === 'in_progress') throw inProgress();
        const documents = await store.listAttachedDocuments(tx, caller, key, file);
        for (const document of documents) await removeDocument(tx, key, document);
        const forgotten = await forget(tx, key, [file]);
        // The file failed in a batch that is still active.
        if (documents.length === 0 && forgotten === 0) throw inProgress();
      }),

    /** Detaches a file from every source that the caller may change. */
    async detachEverywhere(caller: Caller, id: string): Promise<void> {
      const file = pathId('file', id);
      let after = firstUuid;
      for (;;) {
        const ids = await store.listSourcesOfFile(db, caller, file, after, sourcesAtOnce);
        for (const sourceId of ids) {
          const source = await sources.findForChange(db, caller, formatId('source', sourceId));
          if (source === undefined) continue;
          await change(db, source, async (tx, key) => {
            for (const document of await store.listAttachedDocuments(tx, caller, key, file))
              await removeDocument(tx, key, document);
            await forget(tx, key, [file]);
          });
        }
        const last = ids.at(-1);
        if (last === undefined || ids.length < sourcesAtOnce) return;
        after = last;
      }
    },

    getBatch: async (caller: Caller, source: VisibleSource, id: string): Promise<Batch> =>
      describeBatch(db, await findBatch(caller, source, id)),

    /** The files of a batch that the source still has. */
    async listOfBatch(
      caller: Caller,
      source: VisibleSource,
      id: string,
      keyset: Keyset,
      status: store.AttachmentStatus | undefined,
    ): Promise<KeysetPage<store.Attachment>> {
      const { appId, sourceId, metadata } = await findBatch(caller, source, id);
      const files = Array.isArray(metadata.files) ? (metadata.files as string[]) : [];
      return store.listAttachments(db, caller, { appId, sourceId }, keyset, { status, files });
    },

    /**
     * Ends a batch. Documents that exist stay; the other files are cancelled. A batch that has ended stays unchanged.
     */
    async cancelBatch(caller: Caller, source: VisibleSource, id: string): Promise<Batch> {
      const { appId, id: ingestionId } = await findBatch(caller, source, id);
      await ingestions.cancel(db, appId, ingestionId);
      return describeBatch(db, await findBatch(caller, source, id));
    },

    /** The file of each document, with its name. */
    async filesOf(appId: string, documents: readonly string[]) {
      const rows = await store.listFilesOfDocuments(db, appId, [...new Set(documents)]);
      return new Map(rows.map((row) => [row.documentId, row]));
    },
  };
}

async function writeAttributes(tx: Transaction, key: SourceKey, before: store.Attachment, attributes: Attributes) {
  const metadata = { ...keptMembers(before), ...attributes };
  if (before.documentId === null) await store.updateFailedItem(tx, key, before.id, metadata);
  else await updateDocumentMetadata(tx, key.appId, before.documentId, { metadata });
}

/** The members of metadata that are not attributes: lists and objects. */
function keptMembers(attachment: store.Attachment | undefined): Record<string, unknown> {
  const members = Object.entries(attachment?.metadata ?? {});
  return Object.fromEntries(members.filter(([, value]) => typeof value === 'object' && value !== null));
}

const firstUuid = '00000000-0000-0000-0000-000000000000';

/** The UUID of an attachment: that of a file, or of a document without a file. */
function attachedId(id: string): string {
  return found(parseId('file', id) ?? parseId('document', id));
}

function statusOf(error: { code: string } | undefined): store.AttachmentStatus {
  if (error === undefined) return 'completed';
  return error.code === 'cancelled' ? 'cancelled' : 'failed';
}

function noCounts(): Counts {
  return { completed: 0, in_progress: 0, failed: 0, cancelled: 0 };
}

function inProgress(): AppError {
  return new AppError('conflict', 'The file is being processed. Try again later.', {
    headers: { 'retry-after': '1' },
  });
}
