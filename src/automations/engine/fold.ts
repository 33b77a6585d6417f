import type { Graph, GraphNode } from '../definitions/graph.ts';
import type { Generation, NodeError, ToolTurn } from '../nodes/tool-turns.ts';
import type { EntryMetadata, JournalEntry } from './journal.ts';
import { endToolCall, phaseOf, receiveToolCalls } from './tool-calls.ts';

/**
 * The engine is two pure functions. Here `foldJournal` computes a run's state from its journal; `decide` (decide.ts)
 * returns what to do next. Neither reads a clock, a database or anything else: a worker folds the journal and resumes.
 */

export type RunStatus = 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
type RunError = NodeError & { node_id?: string };

/** One active node: everything between its first `node_started` and its end. */
export type Execution = {
  commandId: string;
  nodeId: string;
  kind: string;
  parent: string | undefined;
  index: number;
  attempt: number;
  startedAtMs: number;
  /**
   * `working`: started, no result yet. `timer`, `signal`, `child`: waiting. `fired`, `child_ended`: the wait has ended.
   * `retry`: waits for its next attempt. `fan_out`: its nodes are active. `tools`: the tools that it called are active.
   */
  phase: 'working' | 'timer' | 'fired' | 'signal' | 'child' | 'child_ended' | 'retry' | 'fan_out' | 'tools';
  /** When the timer of this phase fires, if it has one. */
  dueAtMs?: number;
  timerId?: string;
  /** The payload of `timer_fired`. */
  firedAt?: string;
  signal?: string;
  /** The approval (`apr_…`) whose answer it waits for. Only that answer ends the wait, not a signal of the same name. */
  approval?: string;
  child?: { kind: string; id: string };
  fanOut?: FanOut;
  /** The tools that a `generate` node has called. A retry keeps them. */
  generation?: Generation;
};

type FanOut = {
  items: readonly unknown[];
  concurrency: number;
  started: Set<number>;
  /** Outputs by index; a missing index has not ended. */
  results: Map<number, unknown>;
  failure: (NodeError & { node_id: string }) | undefined;
};

export type RunState = {
  sequence: number;
  status: RunStatus;
  input: unknown;
  startedAtMs: number | undefined;
  /** The next top-level node, if none is active. */
  cursor: string | undefined;
  /** How the run ends once nothing is left to do. */
  ending: { status: 'completed'; result: unknown } | { status: 'failed'; error: RunError } | undefined;
  /** The value of `$nodes`. */
  outputs: Record<string, unknown>;
  /** Executions by command, oldest first. */
  active: Map<string, Execution>;
  /** Signals that no wait has taken yet. */
  signals: { sequence: number; name: string; payload: unknown; approval?: string | undefined }[];
};

export function emptyState(): RunState {
  return {
    sequence: 0,
    status: 'pending',
    input: undefined,
    startedAtMs: undefined,
    cursor: undefined,
    ending: undefined,
    outputs: {},
    active: new Map(),
    signals: [],
  };
}

/** Computes the state after these entries: a whole journal, or its beginning. */
export function foldJournal(graph: Graph, entries: readonly JournalEntry[]): RunState {
  const state = emptyState();
  for (const entry of entries) applyEntry(graph, state, entry);
  return state;
}

/** Applies one entry to the state, in place. Throws if the entry does not follow the last one. */
export function applyEntry(graph: Graph, state: RunState, entry: JournalEntry): void {
  if (entry.sequence !== state.sequence + 1)
    throw new Error(`Journal entry ${entry.sequence} does not follow ${state.sequence}.`);
  state.sequence = entry.sequence;
  const { record } = entry;
  const execution = entry.commandId === undefined ? undefined : state.active.get(entry.commandId);
  switch (entry.type) {
    case 'run_started':
      state.status = 'running';
      state.input = record.payload;
      state.startedAtMs = Date.parse(record.timestamp);
      state.cursor = graph.startNode;
      return;
    case 'node_started':
      startExecution(graph, state, entry, execution);
      return;
    case 'signal_received':
      state.signals.push({
        sequence: entry.sequence,
        name: String(memberOf(record.payload, 'name')),
        payload: memberOf(record.payload, 'payload'),
        approval: record.metadata?.approval,
      });
      return;
    case 'run_completed':
    case 'run_failed':
    case 'run_cancelled':
      state.status =
        entry.type === 'run_completed' ? 'completed' : entry.type === 'run_failed' ? 'failed' : 'cancelled';
      state.cursor = undefined;
      state.active.clear();
      return;
    default:
      if (execution) continueExecution(graph, state, execution, entry);
  }
}

/** Applies an entry of an execution that has started. Entries that are not listed change nothing. */
function continueExecution(graph: Graph, state: RunState, execution: Execution, entry: JournalEntry): void {
  const { record } = entry;
  switch (entry.type) {
    case 'tool_calls_received':
      receiveToolCalls(execution, record.payload as ToolTurn);
      return;
    case 'timer_started':
      wait(execution, 'timer', entry);
      return;
    case 'signal_waiting': {
      wait(execution, 'signal', entry);
      execution.signal = String(memberOf(record.payload, 'name'));
      const approval = memberOf(record.payload, 'approval');
      if (typeof approval === 'string') execution.approval = approval;
      else delete execution.approval;
      return;
    }
    case 'child_run_started':
      wait(execution, 'child', entry);
      execution.child = record.payload as { kind: string; id: string };
      return;
    case 'child_run_ended':
      execution.phase = 'child_ended';
      return;
    case 'timer_fired':
      wait(execution, 'fired', entry);
      execution.firedAt = String(memberOf(record.payload, 'fired_at'));
      return;
    case 'node_completed':
      completeExecution(graph, state, execution, entry);
      return;
    case 'node_failed':
      if (record.metadata?.will_retry !== true) failExecution(graph, state, execution, record.payload as NodeError);
      return;
    case 'node_retry_scheduled':
      endDescendants(state, execution.commandId);
      delete execution.fanOut;
      wait(execution, 'retry', entry);
      return;
  }
}

function startExecution(graph: Graph, state: RunState, entry: JournalEntry, known: Execution | undefined): void {
  const { record } = entry;
  const node = graph.nodes.get(entry.nodeId ?? '');
  if (!node || entry.commandId === undefined) throw new Error(`Journal entry ${entry.sequence} names an unknown node.`);
  const metadata = record.metadata ?? {};
  const execution: Execution = known ?? {
    commandId: entry.commandId,
    nodeId: node.id,
    kind: node.kind,
    parent: metadata.parent_command_id,
    index: metadata.index ?? 0,
    attempt: 1,
    startedAtMs: 0,
    phase: 'working',
  };
  execution.attempt = metadata.attempt ?? 1;
  execution.startedAtMs = Date.parse(record.timestamp);
  execution.phase = phaseOf(execution);
  delete execution.dueAtMs;
  delete execution.timerId;
  const items = memberOf(record.payload, 'items');
  if (isFanOut(node) && Array.isArray(items)) {
    const concurrency = memberOf(record.payload, 'concurrency');
    execution.phase = 'fan_out';
    execution.fanOut = {
      items,
      concurrency: typeof concurrency === 'number' ? concurrency : items.length,
      started: new Set(),
      results: new Map(),
      failure: undefined,
    };
  }
  state.active.set(execution.commandId, execution);
  if (execution.parent === undefined) {
    state.cursor = undefined;
    return;
  }
  state.active.get(execution.parent)?.fanOut?.started.add(execution.index);
}

function isFanOut(node: GraphNode): boolean {
  return node.kind === 'for_each' || node.kind === 'parallel';
}

function wait(execution: Execution, phase: Execution['phase'], entry: JournalEntry): void {
  execution.phase = phase;
  const due = memberOf(entry.record.payload, 'fires_at');
  if (typeof due === 'string') execution.dueAtMs = Date.parse(due);
  else delete execution.dueAtMs;
  if (entry.timerId !== undefined) execution.timerId = entry.timerId;
}

function completeExecution(graph: Graph, state: RunState, execution: Execution, entry: JournalEntry): void {
  const output = entry.record.payload ?? null;
  const metadata = entry.record.metadata ?? {};
  state.active.delete(execution.commandId);
  endDescendants(state, execution.commandId);
  if (metadata.signal_sequence !== undefined)
    state.signals = state.signals.filter((signal) => signal.sequence !== metadata.signal_sequence);
  const node = graph.nodes.get(execution.nodeId);
  if (!node) return;
  if (execution.parent !== undefined) {
    const parent = state.active.get(execution.parent);
    if (parent) endToolCall(parent, execution, { output });
    parent?.fanOut?.results.set(execution.index, output);
    if (parent?.kind === 'parallel' && parent.parent === undefined) state.outputs[node.id] = output;
    return;
  }
  state.outputs[node.id] = output;
  if (node.kind === 'complete') state.ending = { status: 'completed', result: output };
  else continueAfter(state, successor(node, output, metadata), output);
}

function successor(node: GraphNode, output: unknown, metadata: EntryMetadata): string | undefined {
  if (metadata.timed_out === true) return node.on_timeout as string;
  if (node.kind !== 'conditional') return node.on_success;
  return (memberOf(output, 'result') === true ? node.on_true : node.on_false) as string;
}

function continueAfter(state: RunState, next: string | undefined, output: unknown): void {
  state.cursor = next;
  if (next === undefined) state.ending = { status: 'completed', result: output };
}

function failExecution(graph: Graph, state: RunState, execution: Execution, error: NodeError): void {
  state.active.delete(execution.commandId);
  endDescendants(state, execution.commandId);
  if (execution.parent !== undefined) {
    const parent = state.active.get(execution.parent);
    if (parent) endToolCall(parent, execution, { error });
    const fanOut = parent?.fanOut;
    if (fanOut) fanOut.failure ??= { ...error, node_id: execution.nodeId };
    return;
  }
  state.outputs[execution.nodeId] = { error };
  const onError = graph.nodes.get(execution.nodeId)?.on_error;
  if (onError !== undefined && execution.kind !== 'fail') state.cursor = onError;
  else state.ending = { status: 'failed', error: { ...error, node_id: execution.nodeId } };
}

/** Drops the executions that a node started before it ended. */
function endDescendants(state: RunState, commandId: string): void {
  for (const execution of [...state.active.values()]) {
    if (execution.parent !== commandId || !state.active.has(execution.commandId)) continue;
    state.active.delete(execution.commandId);
    endDescendants(state, execution.commandId);
  }
}

/** The `$item` and `$index` of a node: those of the nearest `for_each` around it. */
export function itemOf(
  state: RunState,
  parent: string | undefined,
  index: number,
): { item: unknown; index: number } | undefined {
  let commandId = parent;
  let at = index;
  while (commandId !== undefined) {
    const around = state.active.get(commandId);
    if (!around) return undefined;
    if (around.kind === 'for_each') return { item: around.fanOut?.items[at], index: at };
    commandId = around.parent;
    at = around.index;
  }
  return undefined;
}

/** A member of a value; undefined if the value is not an object. */
function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** The execution whose timer is due at this time, if only the clock can end its wait. */
export function timerDueAt(state: RunState, atMs: number | undefined): Execution | undefined {
  return [...state.active.values()].find((one) => one.phase === 'timer' && one.dueAtMs === atMs);
}
