import type { RunStatus } from '../engine/fold.ts';
import type { DraftEntry } from '../engine/journal.ts';

/**
 * The state of a run that a program executes, computed from its journal like that of a graph. It knows what each step is
 * doing, but no outputs: only the program reads those.
 */

type Retry = { max_attempts: number; initial_seconds?: number; factor?: number };
export const stepKinds = ['step', 'value', 'sleep', 'signal', 'child', 'approve'] as const;
type StepKind = (typeof stepKinds)[number];

export type Step = {
  nodeId: string;
  commandId: string;
  kind: StepKind;
  attempt: number;
  startedAtMs: number;
  /**
   * `working`: the program executes it. `timer`, `signal`, `child`: waiting. `retry`: waits for its next attempt, `due`: which
   * may start now.
   */
  phase: 'working' | 'timer' | 'signal' | 'child' | 'retry' | 'due' | 'ended';
  retry?: Retry;
  dueAtMs?: number;
  timerId?: string;
  signal?: string;
  /** The approval that ends the wait. Signals do not. */
  approval?: string;
  child?: { kind: string; id: string };
};

export type ProgramState = {
  sequence: number;
  status: RunStatus;
  startedAtMs: number | undefined;
  /** Every step, by its id in the journal. */
  steps: Map<string, Step>;
  /** Those that have not ended, oldest first. */
  open: Map<string, Step>;
  /** Signals that no step has taken yet. */
  signals: { sequence: number; name: string; approval?: string }[];
};

export type ProgramEntry = Pick<DraftEntry, 'type' | 'nodeId' | 'commandId' | 'timerId'> & {
  sequence: number;
  record: Pick<DraftEntry['record'], 'payload' | 'metadata' | 'timestamp'>;
};

export function emptyProgramState(): ProgramState {
  return { sequence: 0, status: 'pending', startedAtMs: undefined, steps: new Map(), open: new Map(), signals: [] };
}

/** Applies one entry to the state, in place. */
export function applyProgramEntry(state: ProgramState, entry: ProgramEntry): void {
  if (entry.sequence !== state.sequence + 1)
    throw new Error(`Journal entry ${entry.sequence} does not follow ${state.sequence}.`);
  state.sequence = entry.sequence;
  const { record } = entry;
  const step = entry.nodeId === undefined ? undefined : state.steps.get(entry.nodeId);
  switch (entry.type) {
    case 'run_started':
      state.status = 'running';
      state.startedAtMs = Date.parse(record.timestamp);
      return;
    case 'node_started':
      startStep(state, entry, step);
      return;
    case 'timer_started':
      wait(step, 'timer', entry);
      return;
    case 'signal_waiting':
      if (step) step.signal = String(memberOf(record.payload, 'name'));
      if (step) Object.assign(step, approvalIn(memberOf(record.payload, 'approval')));
      wait(step, 'signal', entry);
      return;
    case 'child_run_started':
      if (step) step.child = record.payload as { kind: string; id: string };
      wait(step, 'child', entry);
      return;
    case 'node_retry_scheduled':
      wait(step, 'retry', entry);
      return;
    case 'timer_fired':
      if (step?.phase === 'retry') step.phase = 'due';
      if (step) delete step.dueAtMs;
      return;
    case 'signal_received':
      state.signals.push({
        sequence: entry.sequence,
        name: String(memberOf(record.payload, 'name')),
        ...approvalIn(record.metadata?.approval),
      });
      return;
    case 'node_completed':
      state.signals = state.signals.filter(({ sequence }) => sequence !== record.metadata?.signal_sequence);
      endStep(state, step);
      return;
    case 'node_failed':
      if (record.metadata?.will_retry !== true) endStep(state, step);
      return;
    case 'signal_timed_out':
    case 'child_run_ended':
    case 'run_cancel_requested':
      return;
    case 'run_completed':
    case 'run_failed':
    case 'run_cancelled':
      state.status = endOf[entry.type];
      state.open.clear();
      return;
  }
}

const endOf = { run_completed: 'completed', run_failed: 'failed', run_cancelled: 'cancelled' } as const;

function startStep(state: ProgramState, entry: ProgramEntry, known: Step | undefined): void {
  if (entry.nodeId === undefined || entry.commandId === undefined) throw new Error('A started step has no id.');
  const metadata = entry.record.metadata ?? {};
  const step: Step = {
    nodeId: entry.nodeId,
    commandId: known?.commandId ?? entry.commandId,
    kind: known?.kind ?? (metadata.kind as StepKind),
    attempt: metadata.attempt ?? 1,
    startedAtMs: Date.parse(entry.record.timestamp),
    phase: 'working',
  };
  const retry = known?.retry ?? (metadata.retry as Retry | undefined);
  if (retry !== undefined) step.retry = retry;
  state.steps.set(step.nodeId, step);
  state.open.set(step.nodeId, step);
}

function approvalIn(approval: unknown): { approval?: string } {
  return typeof approval === 'string' ? { approval } : {};
}

function wait(step: Step | undefined, phase: Step['phase'], entry: ProgramEntry): void {
  if (!step) return;
  step.phase = phase;
  const due = memberOf(entry.record.payload, 'fires_at');
  if (typeof due === 'string') step.dueAtMs = Date.parse(due);
  else delete step.dueAtMs;
  if (entry.timerId === undefined) delete step.timerId;
  else step.timerId = entry.timerId;
}

function endStep(state: ProgramState, step: Step | undefined): void {
  if (!step) return;
  // A step that has ended is kept only so that it is not started again.
  const { nodeId, commandId, kind, attempt, startedAtMs } = step;
  state.steps.set(nodeId, { nodeId, commandId, kind, attempt, startedAtMs, phase: 'ended' });
  state.open.delete(nodeId);
}

/** Whether the program has something to do, as far as the journal shows. */
export function hasWork(state: ProgramState): boolean {
  for (const { phase } of state.open.values()) if (phase === 'working' || phase === 'due') return true;
  return state.open.size === 0;
}

/** When the next timer of the run fires. */
export function nextDueMs(state: ProgramState, timeoutSeconds: number | null): number | undefined {
  let next =
    timeoutSeconds === null || state.startedAtMs === undefined ? undefined : state.startedAtMs + timeoutSeconds * 1_000;
  for (const { dueAtMs } of state.open.values())
    if (dueAtMs !== undefined && (next === undefined || dueAtMs < next)) next = dueAtMs;
  return next;
}

/** A member of a value; undefined if the value is not an object. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
