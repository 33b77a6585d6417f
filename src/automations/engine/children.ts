import { formatId } from '../../ids.ts';
import type { GraphNode } from '../definitions/graph.ts';
import type { Child } from '../nodes/kind.ts';
import type { ChildEnd } from './advance-deps.ts';
import { type Attempt, endEntries, failureEntries, nodeDraft, type Surroundings } from './draft.ts';
import type { Execution, RunState } from './fold.ts';
import type { DraftEntry } from './journal.ts';

const childIdKinds = { run: 'automationRun', extraction: 'extraction', ingestion: 'ingestion' } as const;

/** Extractions and ingestions may be deleted while a run waits for them; then no event comes. */
const childCheckMs = 60_000;

export function childStarted(attempt: Attempt, child: Child, around: Surroundings): DraftEntry {
  const payload = { kind: child.kind, id: formatId(childIdKinds[child.kind], child.id) };
  return nodeDraft(attempt, around, 'child_run_started', { payload });
}

/** The entry for the child's end, on the node that waited for it. */
export function childEnded(
  node: GraphNode,
  execution: Execution,
  child: Child,
  end: ChildEnd,
  around: Surroundings,
): DraftEntry[] {
  const ended = nodeDraft(execution, around, 'child_run_ended', {
    payload: { ...child, ...('error' in end ? { error: end.error } : {}) },
  });
  const rest =
    'error' in end
      ? failureEntries(node, execution, end.error, around)
      : endEntries(node, execution, end.output, around);
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
