import type { Db, Transaction } from '../../db/database.ts';
import { addJob } from '../../jobs/queue.ts';
import { taskNames } from '../../jobs/task-names.ts';
import { AppError, notFound } from '../../lib/errors.ts';
import { lockSource, type SourceKey } from '../index/store.ts';
import * as store from './store.ts';

/** What a step of a sync reads and changes, with the syncs of its source locked. */
export type Step = { tx: Transaction; sync: store.SyncRow; state: store.SyncState };

/** Locks the syncs of a source. 404 if it has just been deleted. */
export async function lockStateOf(tx: Transaction, key: SourceKey): Promise<store.SyncState> {
  await lockSource(tx, key);
  const rows = await tx`select 1 from knowledge_sources where app_id = ${key.appId} and id = ${key.sourceId}`;
  if (rows.count === 0) throw notFound();
  return store.lockState(tx, key);
}

/** Without a fence, it is the connector that started the sync, and no other has resumed it. */
export function requireFence(sync: store.SyncRow, fence: number | undefined): void {
  if (fence === undefined ? !sync.isResumed : fence === sync.fence) return;
  throw new AppError('conflict', 'Another connector has resumed the sync.', { details: { fence: sync.fence } });
}

export function requireActive({ status }: store.SyncRow): void {
  if (status !== 'active') throw new AppError('conflict', 'The sync has ended.', { details: { status } });
}

export function expiryOf({ ttlSeconds }: { ttlSeconds: number }, now: Date): Date {
  return new Date(now.getTime() + ttlSeconds * 1_000);
}

/** Queues one job that applies the items of a source, however often it is called. */
export function queueItems(db: Db, { appId, sourceId }: SourceKey, inMs?: number) {
  return addJob(db, taskNames.applySyncs, { appId, sourceId }, { key: `${taskNames.applySyncs}/${sourceId}`, inMs });
}
