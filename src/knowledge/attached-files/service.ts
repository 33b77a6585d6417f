import type { Database, Transaction } from '../../db/database.ts';
import type { Keyset, KeysetPage } from '../../db/pages.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { requireQuotaLeft } from '../../tenancy/quotas.ts';
import { updateDocumentMetadata } from '../documents/store.ts';
import type { SourceKey } from '../index/store.ts';
import type { IngestService } from '../ingestion/service.ts';
import type { VisibleSource } from '../sources/find.ts';
import type { SourceService } from '../sources/service.ts';
import { type Counts, createBatches, noCounts } from './batches.ts';
import {
  type Attributes,
  attachedId,
  changeAttachments,
  type FileToAttach,
  forgetFailed,
  getAttachment,
  inProgress,
  keptMembers,
  requireFiles,
} from './change.ts';
import { createDetaching } from './detach.ts';
import * as store from './store.ts';

/** A source with the counts and bytes of its files. */
export type Tallied = { counts: Counts; bytes: number };

/**
 * The files of a source of documents: attaching a file creates a document from it. Only the documents and the items of
 * ingestions are stored.
 */
export function createAttachmentService(deps: { db: Database; sources: SourceService; ingestions: IngestService }) {
  const { db, ingestions } = deps;

  return {
    ...createBatches(deps),
    ...createDetaching(deps),

    /** Attaches one file. If it is already attached, only its attributes change, if given. */
    async attach(caller: Caller, source: VisibleSource, given: FileToAttach): Promise<store.Attachment> {
      const [file = ''] = await requireFiles(db, caller, [given]);
      await requireQuotaLeft(db, source, 'documents');
      return changeAttachments(db, source, async (tx, key) => {
        const before = await store.findAttachment(tx, caller, key, file);
        if (before?.status === 'in_progress') {
          if (given.attributes !== undefined) throw inProgress();
        } else if (before?.documentId) {
          if (given.attributes !== undefined) await writeAttributes(tx, key, before, given.attributes);
        } else {
          await forgetFailed(tx, ingestions, key, [file]);
          await ingestions.ingestFiles(tx, source, 'push', [{ file, documentId: null, metadata: given.attributes }]);
        }
        return getAttachment(tx, caller, key, file);
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
      changeAttachments(db, source, async (tx, key) => {
        const before = await getAttachment(tx, caller, key, attachedId(id));
        if (before.status === 'in_progress') throw inProgress();
        await writeAttributes(tx, key, before, attributes);
        return getAttachment(tx, caller, key, before.id);
      }),

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
