import type { Static } from 'typebox';
import type { Transaction } from '../../db/database.ts';
import { AppError } from '../../lib/errors.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { SourceKey } from '../index/store.ts';
import { type syncCreateSchema, syncSecondsDefault } from './schema.ts';
import { expiryOf, lockStateOf } from './state.ts';
import * as store from './store.ts';

/** Ended syncs of a source that can still be read. */
const syncsKept = 100;

/** Starts a sync, or resumes the expired one of the same mode. Returns its id. */
export async function startSync(
  tx: Transaction,
  key: SourceKey,
  { mode, expires_in_seconds: ttlSeconds = syncSecondsDefault, take_over: takesOver }: Static<typeof syncCreateSchema>,
  now: Date,
): Promise<string> {
  const state = await lockStateOf(tx, key);
  const term = { fence: state.fence + 1, ttlSeconds, expiresAt: expiryOf({ ttlSeconds }, now) };
  const live = await store.findLive(tx, key);
  if (live) requireReplaceable(live, takesOver === true, now);
  await store.updateState(tx, key, { ...state, fence: term.fence });
  if (live?.mode === mode) {
    await store.updateSync(tx, live, { ...live, ...term, isResumed: true });
    return live.id;
  }
  if (live) await store.endSync(tx, key.appId, live.id, 'aborted');
  const id = newUuid();
  await store.insertSync(tx, { ...key, ...term, id, mode, cursor: mode === 'changes' ? state.cursor : null });
  await store.deleteOldSyncs(tx, key, syncsKept);
  return id;
}

function requireReplaceable(live: store.SyncRow, isTakenOver: boolean, now: Date): void {
  if (live.status === 'completing')
    throw new AppError('conflict', 'The last sync of this source is still being completed.', {
      details: { sync: formatId('sync', live.id) },
    });
  if (isTakenOver || live.expiresAt <= now) return;
  throw new AppError('conflict', 'Another sync of this source is active.', {
    details: { sync: formatId('sync', live.id), expires_at: live.expiresAt.toISOString() },
  });
}
