import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { Logger } from '../../lib/log.ts';
import { prepareApproval } from '../approvals/request.ts';
import type { Expressions } from '../engine/expressions.ts';
import type { RunSecrets } from '../engine/run-secrets.ts';
import { nodeErrorOf } from '../nodes/errors.ts';
import { loadRunCaller } from '../runs/identity.ts';
import type { RunStarts } from '../runs/start.ts';
import * as runStore from '../runs/store.ts';
import type { WorkerEntry } from './schema.ts';
import type { PreparedStep } from './steps.ts';

export type PrepareDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  expressions: Expressions;
  runSecrets: RunSecrets;
  runs: RunStarts;
};

/**
 * Prepares the children and approvals of a batch. Not in a transaction: nothing requests a second connection while it
 * holds one.
 */
export async function prepareSteps(
  deps: PrepareDeps,
  run: runStore.RunRow,
  entries: readonly WorkerEntry[],
): Promise<Map<number, PreparedStep>> {
  const prepared = new Map<number, PreparedStep>();
  for (const [index, entry] of entries.entries()) {
    if (entry.kind !== 'child' && entry.kind !== 'approve') continue;
    const commandId = formatId('command', newUuid());
    const row = await runStore.findWork(deps.db, run.appId, run.id);
    if (!row) continue;
    try {
      const prepare = entry.kind === 'child' ? prepareChild : prepareAsk;
      prepared.set(index, { commandId, ...(await prepare(deps, row, entry, commandId)) });
    } catch (error) {
      prepared.set(index, { commandId, error: nodeErrorOf(error, deps.log) });
    }
  }
  return prepared;
}

async function prepareChild({ db, runs }: PrepareDeps, row: runStore.WorkRow, entry: WorkerEntry, commandId: string) {
  const caller = await loadRunCaller(db, row);
  const input = { automation: entry.automation ?? '', payload: entry.payload ?? {} };
  return { child: await runs.prepareChild(caller, row, input, commandId) };
}

async function prepareAsk(deps: PrepareDeps, row: runStore.WorkRow, entry: WorkerEntry, commandId: string) {
  const { type: _type, kind: _kind, node_id: nodeId = '', timeout_seconds: seconds, question = '', ...more } = entry;
  const { finder } = await deps.runSecrets.of(deps.db, row, row.secretsVersion);
  const expiresAt = seconds === undefined ? null : new Date(deps.clock.now().getTime() + seconds * 1_000);
  const place = { nodeId, commandId, attempt: 1, expiresAt };
  return { approval: { ...(await prepareApproval(deps, row, finder, place, { question, ...more })), expiresAt } };
}
