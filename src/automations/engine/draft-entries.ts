import { type GraphNode, graphLimits } from '../definitions/graph.ts';
import { nonRetryableCodes } from '../nodes/errors.ts';
import { CallsTools, type NodeError } from '../nodes/tool-turns.ts';
import type { Execution } from './fold.ts';
import type { DraftEntry, EntryMetadata } from './journal.ts';
import { retryDelayMs } from './retry.ts';

/** Builds the entries that the engine adds to the journal. */

export type EntryContext = {
  nowMs: number;
  /** The run's input, for its first entry. */
  input: unknown;
  timeoutSeconds: number | undefined;
  journalEntriesMax?: number;
  /** Bytes of all entries of the journal. */
  journalBytes?: number;
  newCommandId(): string;
  newTimerId(): string;
  /** Whether the run's tree has used up its journal entries. */
  treeIsSpent?: boolean;
};

/** An attempt that is about to start, at its place in the execution `parent` or at the top level. */
export type AttemptStart = {
  node: GraphNode;
  attempt: number;
  commandId: string;
  parent: string | undefined;
  index: number;
};

/** The entry that starts an attempt. `payload` is state that the engine needs later, such as the items of a fan-out. */
export function draftStart(
  start: AttemptStart,
  around: EntryContext,
  record: { payload?: unknown; context?: Record<string, unknown> },
): DraftEntry {
  const inside = start.parent === undefined ? {} : { parent_command_id: start.parent, index: start.index };
  return draftNodeEntry(attemptOf(start, around), around, 'node_started', { ...record, metadata: inside });
}

/** The context that `draftEnd` and `draftFailure` need for an attempt that starts now. */
export function attemptOf(start: AttemptStart, around: EntryContext): Attempt {
  return {
    commandId: start.commandId,
    nodeId: start.node.id,
    attempt: start.attempt,
    startedAtMs: around.nowMs,
  };
}

export type Attempt = Pick<Execution, 'commandId' | 'nodeId' | 'attempt' | 'startedAtMs'>;

/** The entries that end a node with an output (for `fail`, an error). An output over a limit fails the attempt. */
export function draftEnd(
  node: GraphNode,
  attempt: Attempt,
  output: unknown,
  around: EntryContext,
  metadata: EntryMetadata = {},
): DraftEntry[] {
  const payload = output ?? null;
  if (isDeeperThan(payload, graphLimits.outputDepthMax)) {
    const message = `The output is nested more than ${graphLimits.outputDepthMax} deep.`;
    return draftFailure(node, attempt, { code: 'output_too_deep', message }, around);
  }
  if (Buffer.byteLength(JSON.stringify(payload)) > graphLimits.outputBytesMax) {
    const message = `The output is larger than ${graphLimits.outputBytesMax} bytes.`;
    return draftFailure(node, attempt, { code: 'output_too_large', message }, around);
  }
  const type = node.kind === 'fail' ? 'node_failed' : 'node_completed';
  return [draftNodeEntry(attempt, around, type, { payload, metadata })];
}

/** The entries for what external work returned: the node's end, or the tools that the model called. */
export function draftOutput(node: GraphNode, attempt: Attempt, output: unknown, around: EntryContext): DraftEntry[] {
  if (!(output instanceof CallsTools)) return draftEnd(node, attempt, output, around);
  const [end] = draftEnd(node, attempt, output.payload, around);
  if (end?.type !== 'node_completed') return draftFailure(node, attempt, end?.record.payload as NodeError, around);
  return [draftNodeEntry(attempt, around, 'tool_calls_received', { payload: output.payload })];
}

/** Works without recursion, so that a deeply nested value cannot overflow the stack. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let layer: object[] = typeof value === 'object' && value !== null ? [value] : [];
  for (let level = 1; layer.length > 0; level++) {
    if (level > levels) return true;
    const below: object[] = [];
    for (const one of layer)
      for (const inner of Object.values(one)) if (typeof inner === 'object' && inner !== null) below.push(inner);
    layer = below;
  }
  return false;
}

/** The entries of a failed attempt: the wait for the next attempt if one is left, otherwise the node's end. */
export function draftFailure(
  node: GraphNode,
  execution: Attempt,
  error: NodeError,
  around: EntryContext,
): DraftEntry[] {
  const { retry } = node;
  if (!retry || execution.attempt >= retry.max_attempts || nonRetryableCodes.has(error.code))
    return [draftNodeEntry(execution, around, 'node_failed', { payload: error })];
  const delayMs = retryDelayMs(retry, execution.attempt);
  return [
    draftNodeEntry(execution, around, 'node_failed', { payload: error, metadata: { will_retry: true } }),
    {
      ...draftNodeEntry(execution, around, 'node_retry_scheduled', {
        payload: { fires_at: new Date(around.nowMs + delayMs).toISOString() },
      }),
      timerId: around.newTimerId(),
    },
  ];
}

/** An entry for one node's execution, with its attempt and its duration. */
export function draftNodeEntry(
  execution: Attempt,
  around: EntryContext,
  type: DraftEntry['type'],
  record: { payload?: unknown; metadata?: EntryMetadata; context?: Record<string, unknown> },
): DraftEntry {
  const ends = type === 'node_completed' || type === 'node_failed';
  const metadata: EntryMetadata = {
    attempt: execution.attempt,
    ...(ends ? { duration_ms: Math.max(0, around.nowMs - execution.startedAtMs) } : {}),
    ...record.metadata,
  };
  return {
    ...draftEntry(around, type, { ...record, metadata }),
    nodeId: execution.nodeId,
    commandId: execution.commandId,
  };
}

export function draftEntry(
  around: EntryContext,
  type: DraftEntry['type'],
  record: { payload?: unknown; metadata?: EntryMetadata; context?: Record<string, unknown> },
): DraftEntry {
  return { type, record: { ...record, timestamp: new Date(around.nowMs).toISOString() } };
}

export function timerOf(execution: Execution): { timerId?: string } {
  return execution.timerId === undefined ? {} : { timerId: execution.timerId };
}
