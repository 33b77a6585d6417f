import type { Db } from '../../db/database.ts';
import { AppError, invalidField } from '../../lib/errors.ts';
import { formatId, parseId } from '../../lib/ids.ts';
import type { PreparedApproval } from '../approvals/request.ts';
import { closeApprovals } from '../approvals/store.ts';
import type { GraphNode } from '../definitions/graph.ts';
import { draftChildStart } from '../engine/children.ts';
import { draftEnd, draftEntry, draftFailure, draftNodeEntry } from '../engine/draft-entries.ts';
import type { DraftEntry } from '../engine/journal.ts';
import { type Child, type NodeError, NodeFailure } from '../nodes/kind.ts';
import * as runStore from '../runs/store.ts';
import type { ProgramChange } from './journal.ts';
import { programLimits, type WorkerEntry } from './schema.ts';
import { memberOf, type Step } from './state.ts';
import { findPayload } from './store.ts';

/** A child run or an approval that a step starts: ready to be written, or the reason why it cannot be. */
export type PreparedStep = {
  commandId: string;
  child?: { commit(tx: Db): Promise<Child> };
  approval?: PreparedApproval & { expiresAt: Date | null };
  error?: NodeError;
};

/** A step as the shared drafts of entries know it. */
function nodeOf(step: Step): GraphNode {
  return { id: step.nodeId, kind: 'step', ...(step.retry === undefined ? {} : { retry: step.retry }) };
}

/** The members that entries of each type and kind take. */
const membersOf: Record<string, readonly string[]> = {
  node_completed: ['node_id', 'payload'],
  node_failed: ['node_id', 'error', 'retryable'],
  run_completed: ['payload'],
  run_failed: ['error'],
  step: ['node_id', 'kind', 'retry'],
  value: ['node_id', 'kind'],
  sleep: ['node_id', 'kind', 'seconds', 'until'],
  signal: ['node_id', 'kind', 'name', 'timeout_seconds'],
  child: ['node_id', 'kind', 'automation', 'payload'],
  approve: [
    ...['node_id', 'kind', 'question', 'form', 'users', 'teams', 'roles', 'org', 'exclude_invoker', 'timeout_seconds'],
  ],
};
const requiredOf: Record<string, readonly string[]> = {
  node_completed: ['node_id'],
  node_failed: ['node_id', 'error'],
  run_failed: ['error'],
  step: ['node_id'],
  value: ['node_id'],
  sleep: ['node_id'],
  signal: ['node_id', 'name'],
  child: ['node_id', 'automation'],
  approve: ['node_id', 'question'],
};

/** Throws 422 unless each entry has the members of its type, and only the last one ends the run. */
export function checkEntries(entries: readonly WorkerEntry[], now: Date): void {
  for (const [index, entry] of entries.entries()) {
    const at = (member: string) => `entries.${index}.${member}`;
    if (entry.type === 'node_started' && entry.kind === undefined) throw invalidField(at('kind'), 'is required');
    const form = entry.type === 'node_started' ? (entry.kind ?? '') : entry.type;
    for (const member of requiredOf[form] ?? [])
      if (entry[member as keyof WorkerEntry] === undefined) throw invalidField(at(member), 'is required');
    for (const member of Object.keys(entry))
      if (member !== 'type' && !membersOf[form]?.includes(member))
        throw invalidField(at(member), `is not a member of ${entry.type}${entry.kind ? ` of kind ${entry.kind}` : ''}`);
    if (entry.kind === 'sleep') dueAt(entry, index, now);
    if (entry.type.startsWith('run_') && index < entries.length - 1)
      throw invalidField(at('type'), 'ends the run, so it must be the last entry');
  }
}

/** When a sleep ends. */
function dueAt({ seconds, until }: WorkerEntry, index: number, now: Date): Date {
  if ((seconds === undefined) === (until === undefined))
    throw invalidField(`entries.${index}.seconds`, 'or until must be given, and not both');
  if (seconds !== undefined) return new Date(now.getTime() + seconds * 1_000);
  const time = new Date(until ?? '');
  // No timer is older than the times that the database can store.
  if (!(time.getTime() >= 0)) throw invalidField(`entries.${index}.until`, 'must be an ISO 8601 time after 1970');
  if (time.getTime() > now.getTime() + programLimits.sleepSecondsMax * 1_000)
    throw invalidField(`entries.${index}.until`, 'must be within 366 days');
  return time;
}

/** Adds one entry of the worker, and what the server writes with it. */
export async function addWorkerEntry(
  change: ProgramChange,
  entry: WorkerEntry,
  index: number,
  prepared: PreparedStep | undefined,
): Promise<void> {
  const { around, work, state } = change;
  const environment = { code_version: work.codeVersion };
  if (entry.type === 'node_started') return startStep(change, entry, index, prepared, environment);
  if (entry.type === 'run_completed') {
    const [end] = draftEnd({ id: 'run', kind: 'step' }, nothing, entry.payload ?? null, around);
    const isTooLarge = end?.type === 'node_failed';
    const payload = end?.record.payload ?? null;
    change.add([draftEntry(around, isTooLarge ? 'run_failed' : 'run_completed', { payload })], environment);
    return;
  }
  if (entry.type === 'run_failed') {
    change.add([draftEntry(around, 'run_failed', { payload: entry.error })], environment);
    return;
  }
  const step = state.steps.get(entry.node_id ?? '');
  if (step?.phase !== 'working') throw notPossible(index, entry, step, 'is not in progress');
  const node = nodeOf(step);
  if (entry.type === 'node_completed') {
    change.add(draftEnd(node, step, entry.payload ?? null, around), environment);
    return;
  }
  const { retry: _, ...final } = node;
  const error = entry.error ?? { code: 'failed', message: '' };
  change.add(draftFailure(entry.retryable === false ? (final as GraphNode) : node, step, error, around), environment);
}

const nothing = { commandId: '', nodeId: '', attempt: 1, startedAtMs: 0 };

async function startStep(
  change: ProgramChange,
  entry: WorkerEntry,
  index: number,
  prepared: PreparedStep | undefined,
  environment: Record<string, unknown>,
): Promise<void> {
  const { around, state } = change;
  const nodeId = entry.node_id ?? '';
  const known = state.steps.get(nodeId);
  if (known !== undefined && (known.phase !== 'due' || known.kind !== entry.kind))
    throw notPossible(index, entry, known, 'was started before');
  const commandId = known?.commandId ?? prepared?.commandId ?? around.newCommandId();
  const attempt = { nodeId, commandId, attempt: (known?.attempt ?? 0) + 1, startedAtMs: around.nowMs };
  const { type: _type, node_id: _id, kind, retry, ...input } = entry;
  const metadata = { kind, ...(known === undefined && retry !== undefined ? { retry } : {}) };
  const context = Object.keys(input).length === 0 ? {} : { context: { input } };
  change.add([draftNodeEntry(attempt, around, 'node_started', { metadata, ...context })], environment);
  if (kind === 'sleep') {
    const payload = { fires_at: dueAt(entry, index, change.now).toISOString() };
    const timer = draftNodeEntry(attempt, around, 'timer_started', { payload });
    change.add([{ ...timer, timerId: around.newTimerId() }]);
  } else if (kind === 'signal') {
    const seconds = entry.timeout_seconds;
    const fires = seconds === undefined ? {} : { fires_at: new Date(around.nowMs + seconds * 1_000).toISOString() };
    const waiting = draftNodeEntry(attempt, around, 'signal_waiting', { payload: { name: entry.name, ...fires } });
    change.add([seconds === undefined ? waiting : { ...waiting, timerId: around.newTimerId() }]);
    await takeSignals(change);
  } else if (kind === 'child') await startChild(change, attempt, entry.payload, prepared);
  else if (kind === 'approve') await ask(change, attempt, prepared);
}

/** Asks people: the approval is written with the entries of its step. */
async function ask(
  change: ProgramChange,
  attempt: Pick<Step, 'nodeId' | 'commandId' | 'attempt' | 'startedAtMs'>,
  prepared: PreparedStep | undefined,
): Promise<void> {
  const { around, tx } = change;
  if (prepared?.error !== undefined)
    return change.add([draftNodeEntry(attempt, around, 'node_failed', { payload: prepared.error })]);
  if (prepared?.approval === undefined) throw new Error('An approval was not prepared.');
  const { id, expiresAt } = prepared.approval;
  await prepared.approval.write(tx, change.now);
  const fires = expiresAt === null ? {} : { fires_at: expiresAt.toISOString() };
  const payload = { name: attempt.nodeId, approval: formatId('approval', id), ...fires };
  const waiting = draftNodeEntry(attempt, around, 'signal_waiting', { payload });
  change.add([expiresAt === null ? waiting : { ...waiting, timerId: around.newTimerId() }]);
}

async function startChild(
  change: ProgramChange,
  attempt: Pick<Step, 'nodeId' | 'commandId' | 'attempt' | 'startedAtMs'>,
  payload: unknown,
  prepared: PreparedStep | undefined,
): Promise<void> {
  const { around, secretValues, tx } = change;
  const fail = (error: NodeError) => change.add([draftNodeEntry(attempt, around, 'node_failed', { payload: error })]);
  const [secret] = secretValues.namesIn(payload ?? null);
  if (secret !== undefined)
    return fail({
      code: 'secret_handed_on',
      message: `The payload contains the secret "${secret}": another run would store it for its readers.`,
    });
  if (prepared?.error !== undefined) return fail(prepared.error);
  if (prepared?.child === undefined) throw new Error('A child run was not prepared.');
  try {
    change.add([draftChildStart(attempt, await prepared.child.commit(tx), around)]);
  } catch (error) {
    if (!(error instanceof NodeFailure)) throw error;
    fail({ code: error.code, message: error.message });
  }
}

function notPossible(index: number, entry: WorkerEntry, step: Step | undefined, words: string): AppError {
  return new AppError('conflict', `entries.${index}: the step "${entry.node_id}" ${words}.`, {
    details: { node_id: entry.node_id, phase: step?.phase ?? 'unknown' },
  });
}

/**
 * Gives each waiting step the answer of its approval, or the oldest signal of its name. Steps take signals in the order in
 * which they started.
 */
export async function takeSignals(change: ProgramChange): Promise<void> {
  const { state, around, row, tx } = change;
  for (const step of [...state.open.values()]) {
    const signal = step.phase === 'signal' && state.signals.find((one) => takes(step, one));
    if (!signal) continue;
    const draft: DraftEntry | undefined = change.drafts[signal.sequence - row.sequence - 1];
    const received = draft?.record.payload ?? (await findPayload(tx, row, signal.sequence));
    const payload = memberOf(received, 'payload') ?? null;
    change.add(draftEnd(nodeOf(step), step, payload, around, { signal_sequence: signal.sequence }));
  }
}

/** Whether a waiting step takes a signal. Only its answer ends an approval. */
export function takes({ signal, approval }: Step, received: { name: string; approval?: string }): boolean {
  return approval === received.approval && (approval !== undefined || signal === received.name);
}

/** Fires the timers that are due, that of the whole run first. */
export async function fireDue(change: ProgramChange): Promise<void> {
  const { state, around, row, tx } = change;
  const limitMs = row.timeoutSeconds === null ? undefined : (state.startedAtMs ?? 0) + row.timeoutSeconds * 1_000;
  if (limitMs !== undefined && state.startedAtMs !== undefined && limitMs <= around.nowMs) {
    const payload = { code: 'timeout', message: `The run took longer than ${row.timeoutSeconds} seconds.` };
    change.add([draftEntry(around, 'run_failed', { payload })]);
    return;
  }
  for (const step of [...state.open.values()]) {
    if (step.dueAtMs === undefined || step.dueAtMs > around.nowMs) continue;
    const timer = step.timerId === undefined ? {} : { timerId: step.timerId };
    const payload = { fired_at: change.now.toISOString() };
    const fired = { ...draftNodeEntry(step, around, 'timer_fired', { payload }), ...timer };
    if (step.phase === 'retry') change.add([fired]);
    else if (step.phase === 'timer') change.add([fired, ...draftEnd(nodeOf(step), step, payload, around)]);
    else {
      const id = step.approval === undefined ? undefined : parseId('approval', step.approval);
      if (id !== undefined) await closeApprovals(tx, row, [{ id, status: 'expired' }], change.now);
      const awaited = id === undefined ? `The signal "${step.signal}"` : 'The answer';
      const error = { code: 'timeout', message: `${awaited} did not arrive in time.` };
      const timedOut = { ...draftNodeEntry(step, around, 'signal_timed_out', {}), ...timer };
      change.add([timedOut, ...draftFailure(nodeOf(step), step, error, around)]);
    }
  }
}

/** Ends the steps whose child run has ended. */
export async function takeChildEnds(
  change: ProgramChange,
  endOf: (row: runStore.RunRow | undefined) => { output: unknown } | { error: NodeError } | undefined,
): Promise<void> {
  const { state, around, row, tx } = change;
  const children = [...state.open.values()].flatMap((step) => {
    const id = step.phase === 'child' ? parseId('automationRun', step.child?.id ?? '') : undefined;
    return id === undefined ? [] : [{ step, id }];
  });
  if (children.length === 0) return;
  // A step may have thousands of children, and this runs at the end of each.
  const running = new Set(await runStore.listChildRuns(tx, row));
  for (const { step, id } of children) {
    if (running.has(id)) continue;
    const end = endOf(await runStore.findRun(tx, row.appId, id));
    if (end === undefined) continue;
    const child = { kind: 'run', id: formatId('automationRun', id) };
    const payload = { ...child, ...('error' in end ? { error: end.error } : {}) };
    const ended = draftNodeEntry(step, around, 'child_run_ended', { payload });
    const rest =
      'error' in end
        ? draftFailure(nodeOf(step), step, end.error, around)
        : draftEnd(nodeOf(step), step, end.output, around);
    change.add([ended, ...rest]);
  }
}
