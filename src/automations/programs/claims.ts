import { AppError } from '../../lib/errors.ts';
import { newUuid } from '../../lib/ids.ts';
import { draftEntry } from '../engine/draft-entries.ts';
import type { DraftEntry } from '../engine/journal.ts';
import * as turns from '../runs/turn-store.ts';
import type { ProgramChange } from './journal.ts';
import type { WorkBatch } from './schema.ts';
import { hasWork } from './state.ts';
import * as store from './store.ts';

/** Claims on runs: who executes one, until when, and when it is ready for others. */

/** Versions of the code that are kept as not fitting a journal. */
const refusedVersionsMax = 20;

/** What a claim asks for. `fits`: whatever versions of the code the run has refused. */
type ClaimInput = { code_version: string; lease_seconds: number; fits?: boolean };
/** `sequence`: the last entry that the holder reads with the claim. */
export type HeldClaim = { claim: string; leaseUntil: Date; sequence: number };

/** Claims the run in this change, unless another worker was faster or the automation's limit is reached. */
export async function claimRun(change: ProgramChange, input: ClaimInput): Promise<'lost' | 'full' | HeldClaim> {
  const { work, row, state, tx, now } = change;
  const isRefused = input.fits !== true && work.refusedVersions.includes(input.code_version);
  const isReady = work.readyAt !== null && work.readyAt <= now && !isRefused;
  if (!isReady || change.hasEnded) return 'lost';
  change.isByHolder = true;
  const isNew = state.status === 'pending';
  const turn = isNew && row.limited ? await turns.takeTurnOf(tx, row, now) : 'now';
  if (turn === 'full') return 'full';
  if (turn === 'later') {
    // It is offered again when its turn comes.
    work.readyAt = null;
    return 'lost';
  }
  // A run that keeps steps of another one has this entry. One that got a signal before has others.
  if (isNew && state.startedAtMs === undefined)
    change.add([draftEntry(change.around, 'run_started', { payload: change.around.input ?? null })]);
  if (isNew) state.startedAtMs = change.around.nowMs;
  state.status = 'running';
  const claim = newUuid();
  Object.assign(work, {
    ...{ claim, leaseSeconds: input.lease_seconds, codeVersion: input.code_version },
    ...{ seen: state.sequence, batchAfter: null, batchDigest: null, wokenBy: null, wakeEvent: null },
  });
  if (row.workflowChanged !== null) await store.setWorkflowChanged(tx, row, null);
  return { claim, leaseUntil: renew(change), sequence: state.sequence };
}

/** Extends the claim. Until it expires, the run is not ready for others. */
export function renew({ work, around }: ProgramChange): Date {
  const leaseUntil = new Date(around.nowMs + (work.leaseSeconds ?? 0) * 1_000);
  work.leaseUntil = leaseUntil;
  work.readyAt = leaseUntil;
  return leaseUntil;
}

/** Makes a run that nobody holds ready. A worker that holds it reads what is new with its next request. */
export function offer(change: ProgramChange): void {
  if (!change.isClaimed && !change.hasEnded) change.work.readyAt = change.now;
}

/** Ends the claim. The run is ready again if there is something to do that the program does not know yet. */
export async function release(
  change: ProgramChange,
  { workflow_changed: changed }: NonNullable<WorkBatch['release']>,
  unseen: boolean,
): Promise<void> {
  const { work, state, tx, row, drafts } = change;
  const isNew = drafts.some((draft) => isOfServer(draft) && draft.record.metadata?.duration_ms !== undefined);
  work.leaseUntil = null;
  work.readyAt = changed !== undefined || unseen || isNew || hasWork(state) ? change.now : null;
  if (changed === undefined || work.codeVersion === null) return;
  work.refusedVersions = [...work.refusedVersions, work.codeVersion].slice(-refusedVersionsMax);
  await store.setWorkflowChanged(tx, row, { expected: changed.expected ?? null, found: changed.found ?? null });
}

/** Entries of workers name the version of their code. */
export function isOfServer({ record }: DraftEntry): boolean {
  return (record.environment as Record<string, unknown> | undefined)?.code_version === undefined;
}

export function claimLost(): AppError {
  return new AppError('claim_lost', 'This claim is no longer valid: it was released, or another worker has the run.');
}
