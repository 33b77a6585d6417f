import { AppError } from '../../lib/errors.ts';
import { claimLost, release, renew } from './claims.ts';
import type { ProgramChange } from './journal.ts';
import type { WorkBatch } from './schema.ts';
import { addWorkerEntry, type PreparedStep } from './steps.ts';

/** Entries of the holder of a claim. */
export type Batch = Omit<WorkBatch, 'claim'>;

/** Applies a batch, unless it was applied before or the run has ended. */
export async function applyBatch(
  change: ProgramChange,
  batch: Batch,
  by: { claim: string; digest: Buffer; prepared: Map<number, PreparedStep> },
): Promise<{ ended: boolean }> {
  const { work, state } = change;
  if (work.claim !== by.claim) throw claimLost();
  change.isByHolder = true;
  if (work.batchAfter === batch.after_sequence && work.batchDigest?.equals(by.digest)) {
    if (!change.hasEnded && work.leaseUntil !== null) renew(change);
    work.seen = state.sequence;
    return { ended: state.status === 'cancelled' };
  }
  if (change.hasEnded) return { ended: true };
  if (work.leaseUntil === null) throw claimLost();
  const isEmpty = batch.entries.length === 0 && batch.release === undefined;
  if (isEmpty ? batch.after_sequence > work.seen : batch.after_sequence !== work.seen)
    throw new AppError('conflict', `The journal continues after entry ${work.seen}, not ${batch.after_sequence}.`, {
      details: { sequence: work.seen },
    });
  renew(change);
  if (isEmpty) {
    work.seen = state.sequence;
    return { ended: false };
  }
  const unseen = state.sequence > batch.after_sequence;
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
  return { ended: change.hasEnded && !endsItself };
}
