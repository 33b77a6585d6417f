import type { Database } from '../db/database.ts';
import { addJob } from '../jobs/queue.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import { listRemovedSources, purgeSource } from './index/purge.ts';
import { listSourcesToCompact } from './index/store.ts';
import { deleteUnusedAcls } from './permissions/store.ts';
import { messageKeptMs } from './sources/inbound-signing.ts';
import { deleteInboundMessages } from './sources/inbound-store.ts';
import { deleteOldTombstones } from './syncs/store.ts';

const sourcesBatch = 20;
const deadChunksMin = 1_000;
const rowsBatch = 1_000;
/** How long a document that a connector deleted is remembered. */
const tombstoneKeptMs = 30 * 24 * 3_600_000;

/** Deletes what deleted sources and documents have left, and what senders and connectors need no longer. */
export async function sweepKnowledge({ db, clock }: { db: Database; clock: Clock }): Promise<void> {
  const before = (ms: number) => new Date(clock.now().getTime() - ms);
  await purgeRemoved(db);
  await compactWasteful(db);
  await deleteInboundMessages(db, before(messageKeptMs));
  while ((await deleteUnusedAcls(db, rowsBatch)) === rowsBatch);
  await deleteOldTombstones(db, before(tombstoneKeptMs));
}

async function purgeRemoved(db: Database): Promise<void> {
  for (;;) {
    const removed = await listRemovedSources(db, sourcesBatch);
    if (removed.length === 0) return;
    for (const key of removed) await purgeSource(db, key);
  }
}

/** Queues the compaction of sources whose index is mostly replaced or deleted chunks. */
async function compactWasteful(db: Database): Promise<void> {
  for (const { appId, sourceId } of await listSourcesToCompact(db, deadChunksMin, sourcesBatch))
    await addJob(db, taskNames.compactIndex, { appId, sourceId }, { key: `compact_index/${sourceId}` });
}
