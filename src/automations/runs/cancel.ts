import type { Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { formatId } from '../../lib/ids.ts';
import type { DraftEntry } from '../engine/journal.ts';
import * as runStore from './store.ts';
import * as turns from './turn-store.ts';

/**
 * Cancels a run and the runs that it started, unless they have ended. The limit of each run's automation is locked first.
 * Returns the run as it is then; undefined if it does not exist.
 */
export async function cancelTree(
  tx: Db,
  clock: Clock,
  appId: string,
  id: string,
): Promise<runStore.RunRow | undefined> {
  const found = await runStore.findRun(tx, appId, id);
  if (!found) return undefined;
  await turns.lockLimit(tx, appId, found.automationId);
  const row = await runStore.lockRun(tx, appId, id);
  if (!row || runStore.isTerminal(row)) return row;
  const now = clock.now();
  const timestamp = now.toISOString();
  const entries: DraftEntry[] =
    row.graphVersion === null
      ? []
      : [
          { type: 'run_cancel_requested', record: { timestamp } },
          { type: 'run_cancelled', record: { timestamp } },
        ];
  await runStore.appendEntries(tx, {
    run: row,
    automation: formatId('automation', row.automationId),
    expected: row.sequence,
    entries,
    status: 'cancelled',
    waiting: false,
    wakeAt: null,
    wakeTimer: null,
    now,
  });
  await turns.queueNextPending(tx, row, now);
  for (const child of await runStore.listChildRuns(tx, row)) await cancelTree(tx, clock, appId, child);
  return runStore.findRun(tx, appId, id);
}
