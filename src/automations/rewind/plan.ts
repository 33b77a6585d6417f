import { type Graph, nestedNodes } from '../definitions/graph.ts';
import { applyEntry, emptyState, type RunState } from '../engine/fold.ts';
import type { JournalEntry } from '../engine/journal.ts';

/*
 * Which entries of an ended run's journal another run keeps, so that it continues before a node or at a failure. Pure:
 * it reads neither a clock nor a database.
 */

/** Where the new run continues: before this `node_started`, or where the old run failed or was cancelled. */
export type RewindFrom = { sequence: number } | 'failure';

type RewindPlan = {
  /** The entries that are kept, in order, with their old sequences. */
  kept: JournalEntry[];
  /** Commands of kept `for_each` and `parallel` nodes that have not ended: their unfinished items run again. */
  open: ReadonlySet<string>;
};

/** One execution of a node in the old journal. */
type Execution = {
  commandId: string;
  nodeId: string;
  children: { execution: Execution; startOfParent: number }[];
  lastStart: number;
  /** Whether its last attempt recorded items. */
  hasItems: boolean;
  end: { sequence: number; isCompleted: boolean } | undefined;
};

/** The journal must belong to a run that has ended. */
export function planRewind(entries: readonly JournalEntry[], from: RewindFrom): RewindPlan {
  const cut = from === 'failure' ? endOf(entries) : from.sequence;
  const before = entries.filter(({ sequence }) => sequence < cut);
  const topLevel = collectTopLevel(before);
  const dropped = new Set<number>();
  const open = new Set<string>();
  const drop = (execution: Execution, after = 0) => {
    for (const { commandId, sequence } of before)
      if (commandId === execution.commandId && sequence > after) dropped.add(sequence);
  };
  const dropAll = (execution: Execution) => {
    drop(execution);
    for (const child of execution.children) dropAll(child.execution);
  };
  const named = from === 'failure' ? undefined : entries.find(({ sequence }) => sequence === cut)?.commandId;
  const reopen = (execution: Execution) => {
    if (!execution.hasItems || execution.commandId === named) return dropAll(execution);
    open.add(execution.commandId);
    drop(execution, execution.lastStart);
    for (const { execution: child, startOfParent } of execution.children)
      if (startOfParent === execution.lastStart && child.end?.isCompleted !== true) reopen(child);
  };
  const failedNode = from === 'failure' ? failedNodeOf(entries) : undefined;
  const last = topLevel.at(-1);
  if (last && (last.end === undefined || (last.nodeId === failedNode && !last.end.isCompleted))) reopen(last);
  return { kept: withoutUnreadSignals(before.filter(({ sequence }) => !dropped.has(sequence))), open };
}

/** The sequence of the entry that ended the run, or of the request to cancel it. */
function endOf(entries: readonly JournalEntry[]): number {
  const requested = entries.find(({ type }) => type === 'run_cancel_requested');
  return requested?.sequence ?? entries.at(-1)?.sequence ?? 0;
}

function failedNodeOf(entries: readonly JournalEntry[]): string | undefined {
  const last = entries.at(-1);
  const error = last?.type === 'run_failed' ? (last.record.payload as { node_id?: string } | null) : undefined;
  return error?.node_id;
}

/** The executions of top-level nodes, in order, with those inside them. */
function collectTopLevel(entries: readonly JournalEntry[]): Execution[] {
  const byCommand = new Map<string, Execution>();
  const topLevel: Execution[] = [];
  for (const { type, sequence, commandId, nodeId, record } of entries) {
    if (commandId === undefined || nodeId === undefined) continue;
    const known = byCommand.get(commandId);
    if (type === 'node_started') {
      const items = (record.payload as { items?: unknown } | null | undefined)?.items;
      const started = { lastStart: sequence, hasItems: Array.isArray(items), end: undefined };
      if (known) {
        Object.assign(known, started);
        continue;
      }
      const execution: Execution = { commandId, nodeId, children: [], ...started };
      byCommand.set(commandId, execution);
      const parent = record.metadata?.parent_command_id;
      if (parent === undefined) topLevel.push(execution);
      else {
        const around = byCommand.get(parent);
        around?.children.push({ execution, startOfParent: around.lastStart });
      }
    } else if (known && (type === 'node_completed' || (type === 'node_failed' && !record.metadata?.will_retry)))
      known.end = { sequence, isCompleted: type === 'node_completed' };
  }
  return topLevel;
}

/** Keeps only the signals that a kept node has taken. */
function withoutUnreadSignals(entries: JournalEntry[]): JournalEntry[] {
  const taken = new Set(entries.map(({ record }) => record.metadata?.signal_sequence));
  return entries.filter(({ type, sequence }) => type !== 'signal_received' || taken.has(sequence));
}

/** A reason why kept entries do not fit a graph, for the caller. */
export class RewindMismatch extends Error {}

/**
 * Computes the state after the kept entries, which are numbered from 1. Throws RewindMismatch if the graph would not have
 * written them in this order.
 */
export function foldKept(graph: Graph, entries: readonly JournalEntry[], open: ReadonlySet<string>, old: Graph) {
  const state = emptyState();
  for (const entry of entries) {
    if (entry.nodeId !== undefined) requireSameNode(graph, old, entry, open);
    if (entry.type === 'node_started' && entry.record.metadata?.parent_command_id === undefined) {
      const isAgain = state.active.has(entry.commandId ?? '');
      if (!isAgain && state.cursor !== entry.nodeId)
        throw new RewindMismatch(
          `node "${entry.nodeId}" follows in the kept history, and ${described(state)} follows in the workflow`,
        );
    }
    applyEntry(graph, state, entry);
  }
  return state;
}

export function described(state: RunState): string {
  return state.cursor === undefined ? 'no node' : `node "${state.cursor}"`;
}

function requireSameNode(graph: Graph, old: Graph, entry: JournalEntry, open: ReadonlySet<string>): void {
  const id = entry.nodeId ?? '';
  const node = graph.nodes.get(id);
  const before = old.nodes.get(id);
  if (!node) throw new RewindMismatch(`the workflow has no node "${id}", which is in the kept history`);
  if (graph === old || !before) return;
  if (node.kind !== before.kind) throw new RewindMismatch(`node "${id}" was of kind ${before.kind} in the old run`);
  const namesOf = (one: typeof node) => JSON.stringify(nestedNodes(one).map((inner) => inner.id));
  if (open.has(entry.commandId ?? '') && namesOf(node) !== namesOf(before))
    throw new RewindMismatch(`node "${id}" has other nested nodes, and some of its items are kept`);
}
