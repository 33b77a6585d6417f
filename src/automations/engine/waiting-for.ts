import type { WaitingFor } from '../runs/store.ts';
import type { Execution } from './fold.ts';

/** People first, then programs, then the clock. */
const order = ['approval', 'signal', 'child', 'retry', 'time'] as const;

/** What a node of a graph or a step of a program waits for. */
type Wait = Pick<Execution, 'nodeId' | 'dueAtMs' | 'signal' | 'approval' | 'child'> & { phase: string };

/** What a run waits for while these are open: one of its waits, and the number of others; null if it waits for nothing. */
export function describeWait(open: Iterable<Wait>): WaitingFor | null {
  const waits = [...open].flatMap((one) => waitOf(one) ?? []);
  const first = waits.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))[0];
  if (first === undefined) return null;
  return waits.length === 1 ? first : { ...first, others: waits.length - 1 };
}

function waitOf({ phase, nodeId, dueAtMs, signal, approval, child }: Wait): WaitingFor | undefined {
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
