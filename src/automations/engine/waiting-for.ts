import type { WaitingFor } from '../runs/store.ts';
import type { Execution, RunState } from './fold.ts';

/** People first, then programs, then the clock. */
const order = ['approval', 'signal', 'child', 'retry', 'time'] as const;

/** What a run waits for in this state: one of its waits, and the number of others; null if it waits for nothing. */
export function describeWait(state: RunState): WaitingFor | null {
  const waits = [...state.active.values()].flatMap((execution) => waitOf(execution) ?? []);
  const first = waits.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))[0];
  if (first === undefined) return null;
  return waits.length === 1 ? first : { ...first, others: waits.length - 1 };
}

function waitOf({ phase, nodeId, dueAtMs, signal, approval, child }: Execution): WaitingFor | undefined {
  const until = dueAtMs === undefined ? {} : { until: new Date(dueAtMs).toISOString() };
  switch (phase) {
    case 'signal':
      return approval === undefined
        ? { kind: 'signal', node_id: nodeId, name: signal ?? '', ...until }
        : { kind: 'approval', node_id: nodeId, approval, ...until };
    case 'child':
      return child && { kind: 'child', node_id: nodeId, id: child.id };
    case 'timer':
      return { kind: 'time', node_id: nodeId, ...until };
    case 'retry':
      return { kind: 'retry', node_id: nodeId, ...until };
    default:
      return undefined;
  }
}
