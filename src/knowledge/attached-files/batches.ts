import type { Database, Db } from '../../db/database.ts';
import type { Keyset, KeysetPage } from '../../db/pages.ts';
import { notFound } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { requireQuotaLeft } from '../../tenancy/quotas.ts';
import { pathId } from '../../tenancy/references.ts';
import type { IngestService } from '../ingestion/service.ts';
import { findIngestion, type IngestionRow, listItems } from '../ingestion/store.ts';
import type { VisibleSource } from '../sources/find.ts';
import { changeAttachments, type FileToAttach, forgetFailed, inProgress, keptMembers, requireFiles } from './change.ts';
import * as store from './store.ts';

export type Counts = Record<store.AttachmentStatus, number>;

export type Batch = { ingestion: IngestionRow; counts: Counts };

/** Files that are attached in one ingestion. */
export function createBatches({ db, ingestions }: { db: Database; ingestions: IngestService }) {
  async function findBatch(caller: Caller, source: VisibleSource, id: string): Promise<IngestionRow> {
    const row = await findIngestion(db, caller, pathId('ingestion', id));
    if (row === undefined || row.sourceId !== source.id || row.kind !== 'batch') throw notFound();
    return row;
  }

  return {
    /** Attaches files in one ingestion. Documents of files that are already attached are created again. */
    async attachBatch(db: Db, caller: Caller, source: VisibleSource, given: readonly FileToAttach[]): Promise<Batch> {
      const files = await requireFiles(db, caller, given);
      await requireQuotaLeft(db, source, 'documents');
      return changeAttachments(db, source, async (tx, key) => {
        await forgetFailed(tx, ingestions, key, files);
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
  };
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

function statusOf(error: { code: string } | undefined): store.AttachmentStatus {
  if (error === undefined) return 'completed';
  return error.code === 'cancelled' ? 'cancelled' : 'failed';
}

export function noCounts(): Counts {
  return { completed: 0, in_progress: 0, failed: 0, cancelled: 0 };
}
