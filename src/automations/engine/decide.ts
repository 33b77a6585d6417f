import { type Graph, type GraphNode, graphLimits, nestedNodes } from '../definitions/graph.ts';
import { treeLimitError } from '../nodes/errors.ts';
import { decideToolCalls } from './decide-tools.ts';
import {
  type AttemptStart,
  draftEnd,
  draftEntry,
  draftFailure,
  draftNodeEntry,
  type EntryContext,
  timerOf,
} from './draft-entries.ts';
import type { Execution, RunState } from './fold.ts';
import type { DraftEntry } from './journal.ts';

/** What to do next. Several commands may be carried out concurrently, in any order. */
export type Command =
  /** Start a node or its next attempt: resolve its members and do its work. */
  | ({ do: 'start' } & AttemptStart)
  /** A node was started and has no result: repeat its work unless another process is doing it. */
  | { do: 'work'; execution: Execution }
  /** Check whether the child has ended. */
  | { do: 'check'; execution: Execution }
  /** Write entries that follow from the journal and the time alone. */
  | { do: 'write'; entries: DraftEntry[] };

type Decision = { ended: true } | { ended: false; commands: Command[]; wakeAtMs: number | undefined };

/** Entries reserved for the end of a run that reaches its limit. */
const reservedEntries = 3;

/** Returns the next commands for a run in this state at this time. */
export function decide(graph: Graph, state: RunState, around: EntryContext): Decision {
  if (state.status !== 'pending' && state.status !== 'running') return { ended: true };
  const write = (...entries: DraftEntry[]): Decision => ({
    ended: false,
    commands: [{ do: 'write', entries }],
    wakeAtMs: undefined,
  });
  if (state.status === 'pending') return write(draftEntry(around, 'run_started', { payload: around.input ?? null }));
  const runDueMs =
    around.timeoutSeconds === undefined ? undefined : (state.startedAtMs ?? 0) + around.timeoutSeconds * 1_000;
  if (state.ending?.status === 'completed')
    return write(draftEntry(around, 'run_completed', { payload: state.ending.result ?? null }));
  if (state.ending?.status === 'failed')
    return write(draftEntry(around, 'run_failed', { payload: state.ending.error }));
  if (runDueMs !== undefined && runDueMs <= around.nowMs)
    return write(
      draftEntry(around, 'run_failed', {
        payload: { code: 'timeout', message: `The run took longer than ${around.timeoutSeconds} seconds.` },
      }),
    );
  const entriesMax = around.journalEntriesMax ?? graphLimits.journalEntriesMax;
  if (state.sequence > entriesMax - reservedEntries - 4)
    return write(
      draftEntry(around, 'run_failed', {
        payload: { code: 'journal_limit', message: `The run's journal reached its limit of ${entriesMax} entries.` },
      }),
    );
  if (around.journalBytes !== undefined && around.journalBytes > graphLimits.journalBytesMax)
    return write(
      draftEntry(around, 'run_failed', {
        payload: {
          code: 'journal_limit',
          message: `The run's journal reached its limit of ${graphLimits.journalBytesMax} bytes.`,
        },
      }),
    );
  if (around.treeIsSpent) return write(draftEntry(around, 'run_failed', { payload: treeLimitError }));

  const commands: Command[] = [];
  const dues: number[] = runDueMs === undefined ? [] : [runDueMs];
  if (state.cursor !== undefined) {
    const node = graph.nodes.get(state.cursor);
    if (!node) throw new Error(`The graph has no node "${state.cursor}".`);
    commands.push({
      do: 'start',
      node,
      attempt: 1,
      commandId: around.newCommandId(),
      parent: undefined,
      index: 0,
    });
  }
  for (const execution of state.active.values()) decideExecution(graph, state, execution, around, commands, dues);
  return { ended: false, commands, wakeAtMs: dues.length === 0 ? undefined : Math.min(...dues) };
}

/** Phases that the node's timeout does not end: the wait for an attempt, and for a signal, which has a timer for it. */
const untimed: ReadonlySet<Execution['phase']> = new Set(['retry', 'signal', 'fired']);

function decideExecution(
  graph: Graph,
  state: RunState,
  execution: Execution,
  around: EntryContext,
  commands: Command[],
  dues: number[],
): void {
  const node = graph.nodes.get(execution.nodeId);
  if (!node) return;
  if (!untimed.has(execution.phase) && node.timeout_seconds !== undefined) {
    const deadline = execution.startedAtMs + node.timeout_seconds * 1_000;
    if (deadline <= around.nowMs) {
      const error = { code: 'timeout', message: `The node took longer than ${node.timeout_seconds} seconds.` };
      commands.push({ do: 'write', entries: draftFailure(node, execution, error, around) });
      return;
    }
    dues.push(deadline);
  }
  const due = execution.dueAtMs !== undefined && execution.dueAtMs <= around.nowMs;
  if (execution.dueAtMs !== undefined && !due) dues.push(execution.dueAtMs);
  switch (execution.phase) {
    case 'working':
    case 'child_ended':
      commands.push({ do: 'work', execution });
      return;
    case 'child':
      commands.push({ do: 'check', execution });
      return;
    case 'retry':
      if (due)
        commands.push({
          do: 'start',
          node,
          attempt: execution.attempt + 1,
          commandId: execution.commandId,
          parent: execution.parent,
          index: execution.index,
        });
      return;
    case 'timer':
      if (due) commands.push({ do: 'write', entries: fireEntries(node, execution, around) });
      return;
    case 'fired':
      commands.push({ do: 'write', entries: draftEnd(node, execution, { fired_at: execution.firedAt }, around) });
      return;
    case 'signal':
      decideSignal(state, node, execution, due, around, commands);
      return;
    case 'tools':
      commands.push(...decideToolCalls(graph, state.active, execution, around));
      return;
    case 'fan_out':
      decideFanOut(state, node, execution, around, commands);
      return;
  }
}

function fireEntries(node: GraphNode, execution: Execution, around: EntryContext): DraftEntry[] {
  const firedAt = { fired_at: new Date(around.nowMs).toISOString() };
  return [
    { ...draftNodeEntry(execution, around, 'timer_fired', { payload: firedAt }), ...timerOf(execution) },
    ...draftEnd(node, execution, firedAt, around),
  ];
}

/** Two waits for the same name take signals in the order in which they started. */
function decideSignal(
  state: RunState,
  node: GraphNode,
  execution: Execution,
  due: boolean,
  around: EntryContext,
  commands: Command[],
): void {
  const waiters = [...state.active.values()].filter(
    (other) => other.phase === 'signal' && other.signal === execution.signal && other.approval === execution.approval,
  );
  const signals = state.signals.filter(
    (signal) => signal.name === execution.signal && signal.approval === execution.approval,
  );
  const signal = signals[waiters.indexOf(execution)];
  if (signal) {
    const entries = draftEnd(node, execution, signal.payload, around, { signal_sequence: signal.sequence });
    commands.push({ do: 'write', entries });
  } else if (due) {
    const timedOut = { ...draftNodeEntry(execution, around, 'signal_timed_out', {}), ...timerOf(execution) };
    const awaited = execution.approval === undefined ? `The signal "${execution.signal}"` : 'The answer';
    const error = { code: 'timeout', message: `${awaited} did not arrive in time.` };
    const rest =
      node.on_timeout === undefined
        ? draftFailure(node, execution, error, around)
        : draftEnd(node, execution, null, around, { timed_out: true });
    commands.push({ do: 'write', entries: [timedOut, ...rest] });
  }
}

function decideFanOut(
  state: RunState,
  node: GraphNode,
  execution: Execution,
  around: EntryContext,
  commands: Command[],
): void {
  const fanOut = execution.fanOut;
  if (!fanOut) return;
  if (fanOut.failure) {
    const { node_id, ...error } = fanOut.failure;
    const failed = { code: error.code, message: `Node "${node_id}" failed: ${error.message}` };
    commands.push({ do: 'write', entries: draftFailure(node, execution, failed, around) });
    return;
  }
  const nested = nestedNodes(node);
  if (fanOut.results.size === fanOut.items.length) {
    const results = fanOut.items.map((_item, index) => fanOut.results.get(index));
    const output =
      node.kind === 'parallel' ? Object.fromEntries(nested.map((inner, index) => [inner.id, results[index]])) : results;
    commands.push({ do: 'write', entries: draftEnd(node, execution, output, around) });
    return;
  }
  const atWork = [...state.active.values()].filter((other) => other.parent === execution.commandId).length;
  let free = fanOut.concurrency - atWork;
  for (let index = 0; index < fanOut.items.length && free > 0; index++) {
    if (fanOut.started.has(index)) continue;
    free -= 1;
    const inner = node.kind === 'parallel' ? nested[index] : nested[0];
    if (!inner) return;
    commands.push({
      do: 'start',
      node: inner,
      attempt: 1,
      commandId: around.newCommandId(),
      parent: execution.commandId,
      index,
    });
  }
}
