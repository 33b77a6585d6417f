import { formatId } from '../../lib/ids.ts';
import * as store from '../runs/store.ts';
import * as turns from '../runs/turn-store.ts';
import type { AdvanceDeps } from './advance-deps.ts';

/** Ends a run whose job has failed for the last time. */
export async function giveUpRun(deps: AdvanceDeps, key: { appId: string; runId: string }): Promise<void> {
  await deps.db.begin(async (tx) => {
    const found = await store.findRun(tx, key.appId, key.runId);
    if (!found) return;
    await turns.lockLimit(tx, key.appId, found.automationId);
    const row = await store.lockRun(tx, key.appId, key.runId);
    if (!row || row.graphVersion === null || (row.status !== 'pending' && row.status !== 'running')) return;
    const now = deps.clock.now();
    const error = { code: 'internal_error', message: 'The run could not be advanced because of an internal error.' };
    await store.appendEntries(tx, {
      run: row,
      automation: formatId('automation', row.automationId),
      expected: row.sequence,
      entries: [
        {
          type: 'run_failed',
          record: { payload: error, environment: deps.environment, timestamp: now.toISOString() },
        },
      ],
      status: 'failed',
      error,
      waiting: false,
      wakeAt: null,
      wakeTimer: null,
      now,
    });
    await turns.queueNextPending(tx, row, now);
  });
}
