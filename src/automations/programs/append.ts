import { hash } from 'node:crypto';
import type { Database } from '../../db/database.ts';
import type { WaitReader } from '../../http/streams/change-waits.ts';
import { type StreamHub, topicOf } from '../../http/streams/sse.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, invalidField } from '../../lib/errors.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { Logger } from '../../lib/log.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { prepareApproval } from '../approvals/request.ts';
import type { Expressions } from '../engine/expressions.ts';
import type { RunSecrets } from '../engine/run-secrets.ts';
import { nodeErrorOf } from '../nodes/errors.ts';
import { loadRunCaller } from '../runs/identity.ts';
import type { RunStarts } from '../runs/start.ts';
import * as runStore from '../runs/store.ts';
import { claimLost, isOfServer, release, renew } from './claims.ts';
import type { ProgramChange, ProgramJournal } from './journal.ts';
import { listServerEntries, type PageRow } from './pages.ts';
import type { WorkBatch, WorkerEntry } from './schema.ts';
import { addWorkerEntry, checkEntries, type PreparedStep } from './steps.ts';

type AppendDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  expressions: Expressions;
  runSecrets: RunSecrets;
  runs: RunStarts;
  secrets: Secrets;
  streams: StreamHub;
  journal: ProgramJournal;
};

/** Entries of the holder of a claim. */
type Batch = Omit<WorkBatch, 'claim'>;

export type Appended = {
  sequence: number;
  ended: boolean;
  leaseUntil: Date | null;
  commandIds: Record<string, string>;
  entries: PageRow[];
};

/** How the holder of a claim writes the journal of its run. */
export function createAppending(deps: AppendDeps) {
  const { db, clock, secrets, streams, journal } = deps;

  async function append(run: runStore.RunRow, claim: string | undefined, batch: Batch): Promise<Appended> {
    if (claim === undefined) throw claimLost();
    checkEntries(batch.entries, clock.now());
    const digest = hash('sha256', JSON.stringify([batch.entries, batch.release]), 'buffer');
    const prepared = await prepareSteps(deps, run, batch.entries);
    const outcome = await journal.change(run, async (change) => {
      const written = await applyBatch(change, batch, { claim, digest, prepared });
      const commandIds = Object.fromEntries(
        batch.entries
          .filter(({ type }) => type === 'node_started')
          .map(({ node_id = '' }) => [node_id, change.state.steps.get(node_id)?.commandId ?? '']),
      );
      return { ...written, commandIds, sequence: change.state.sequence, leaseUntil: change.work.leaseUntil };
    });
    if (outcome === undefined) throw claimLost();
    const { isAlone, ...appended } = outcome;
    const entries = isAlone ? [] : await listServerEntries(db, secrets, run, batch.after_sequence);
    return { ...appended, entries };
  }

  return {
    /** Writes a batch of a worker. An empty one renews the claim, and may wait for what the server adds. */
    async append(run: runStore.RunRow, claim: string | undefined, batch: Batch, reader: WaitReader): Promise<Appended> {
      const waitSeconds = batch.wait_seconds ?? 0;
      if (waitSeconds === 0) return append(run, claim, batch);
      if (batch.entries.length > 0 || batch.release !== undefined)
        throw invalidField('wait_seconds', 'is only for a request without entries and release');
      const wait = streams.waits.open(run.appId, [topicOf('run', run.appId, run.id)], reader);
      try {
        const endMs = performance.now() + waitSeconds * 1_000;
        for (;;) {
          const appended = await append(run, claim, batch);
          const leftMs = endMs - performance.now();
          if (appended.ended || appended.entries.length > 0 || leftMs <= 0 || wait.hasEnded) return appended;
          await wait.next(leftMs);
        }
      } finally {
        wait.close();
      }
    },
  };
}

/**
 * Prepares the children and approvals of a batch. Not in a transaction: nothing requests a second connection while it
 * holds one.
 */
async function prepareSteps(
  deps: AppendDeps,
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

async function prepareChild({ db, runs }: AppendDeps, row: runStore.WorkRow, entry: WorkerEntry, commandId: string) {
  const caller = await loadRunCaller(db, row);
  const input = { automation: entry.automation ?? '', payload: entry.payload ?? {} };
  return { child: await runs.prepareChild(caller, row, input, commandId) };
}

async function prepareAsk(deps: AppendDeps, row: runStore.WorkRow, entry: WorkerEntry, commandId: string) {
  const { type: _type, kind: _kind, node_id: nodeId = '', timeout_seconds: seconds, question = '', ...more } = entry;
  const { finder } = await deps.runSecrets.of(deps.db, row, row.secretsVersion);
  const expiresAt = seconds === undefined ? null : new Date(deps.clock.now().getTime() + seconds * 1_000);
  const place = { nodeId, commandId, attempt: 1, expiresAt };
  return { approval: { ...(await prepareApproval(deps, row, finder, place, { question, ...more })), expiresAt } };
}

/**
 * Applies a batch, unless it was applied before or the run has ended. `isAlone`: the server has added nothing since the
 * batch's `after_sequence`.
 */
async function applyBatch(
  change: ProgramChange,
  batch: Batch,
  by: { claim: string; digest: Buffer; prepared: Map<number, PreparedStep> },
): Promise<{ ended: boolean; isAlone: boolean }> {
  const { work, state } = change;
  if (work.claim !== by.claim) throw claimLost();
  change.isByHolder = true;
  if (work.batchAfter === batch.after_sequence && work.batchDigest?.equals(by.digest)) {
    if (!change.hasEnded && work.leaseUntil !== null) renew(change);
    work.seen = state.sequence;
    return { ended: state.status === 'cancelled', isAlone: false };
  }
  if (change.hasEnded) return { ended: true, isAlone: false };
  if (work.leaseUntil === null) throw claimLost();
  const isEmpty = batch.entries.length === 0 && batch.release === undefined;
  if (isEmpty ? batch.after_sequence > work.seen : batch.after_sequence !== work.seen)
    throw new AppError('conflict', `The journal continues after entry ${work.seen}, not ${batch.after_sequence}.`, {
      details: { sequence: work.seen },
    });
  renew(change);
  const unseen = state.sequence > batch.after_sequence;
  if (isEmpty) {
    work.seen = state.sequence;
    return { ended: false, isAlone: !unseen };
  }
  for (const [index, entry] of batch.entries.entries())
    await addWorkerEntry(change, entry, index, by.prepared.get(index));
  const endsItself = change.hasEnded;
  await change.endAtLimit();
  work.batchAfter = batch.after_sequence;
  work.batchDigest = by.digest;
  work.seen = state.sequence;
  if (batch.release?.workflow_changed === undefined) Object.assign(work, { wakes: 0, wakeAfter: null });
  if (endsItself || change.hasEnded) work.leaseUntil = null;
  else if (batch.release !== undefined) await release(change, batch.release, unseen);
  return { ended: change.hasEnded && !endsItself, isAlone: !unseen && !change.drafts.some(isOfServer) };
}
