import { formatId } from '../../lib/ids.ts';
import type { GraphNode } from '../definitions/graph.ts';
import type { Child } from '../nodes/kind.ts';
import type { ChildEnd } from './advance-deps.ts';
import { type Attempt, draftEnd, draftFailure, draftNodeEntry, type EntryContext } from './draft-entries.ts';
import type { Execution, RunState } from './fold.ts';
import type { DraftEntry } from './journal.ts';

const childIdKinds = { run: 'automationRun', extraction: 'extraction', ingestion: 'ingestion' } as const;

/** The interval of checks: no event announces that an extraction or ingestion was deleted. */
const childCheckMs = 60_000;

export function draftChildStart(attempt: Attempt, child: Child, around: EntryContext): DraftEntry {
  const payload = { kind: child.kind, id: formatId(childIdKinds[child.kind], child.id) };
  return draftNodeEntry(attempt, around, 'child_run_started', { payload });
}

/** The entry for the child's end, on the node that waited for it. */
export function draftChildEnd(
  node: GraphNode,
  execution: Execution,
  child: Child,
  end: ChildEnd,
  around: EntryContext,
): DraftEntry[] {
  const ended = draftNodeEntry(execution, around, 'child_run_ended', {
    payload: { ...child, ...('error' in end ? { error: end.error } : {}) },
  });
  const rest =
    'error' in end ? draftFailure(node, execution, end.error, around) : draftEnd(node, execution, end.output, around);
  return [ended, ...rest];
}

/** When a waiting run is checked again: at its timers, and every minute while it has children in other domains. */
export function wakeForChildren(state: RunState, timerMs: number | undefined, nowMs: number): number | undefined {
  const outside = [...state.active.values()].some(
    (execution) => execution.phase === 'child' && execution.child?.kind !== 'run',
  );
  if (!outside) return timerMs;
  const checkMs = nowMs + childCheckMs;
  return timerMs === undefined ? checkMs : Math.min(timerMs, checkMs);
}
