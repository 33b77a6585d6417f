import { useMemo, useRef } from 'react';
import { useDelayed } from '../../ui/use-delayed.ts';
import { nodesOf } from './complete.ts';
import { readDefinition } from './definition.ts';
import { Graph } from './graph.tsx';

/**
 * The graph of a definition while it is typed. The node at the cursor is marked, and choosing a node shows its text.
 * While the text has a mistake, the last graph stays.
 */
export default function DefinitionGraph({
  text,
  cursor,
  onShow,
}: {
  text: string;
  cursor: number;
  onShow: (offset: number) => void;
}) {
  const settled = useDelayed(text);
  const last = useRef<Record<string, unknown>>(undefined);
  const workflow = useMemo(() => {
    last.current = readGraph(settled) ?? last.current;
    return last.current;
  }, [settled]);
  const nodes = useMemo(() => nodesOf(settled), [settled]);
  if (workflow === undefined) return <p className="faint">The graph appears here when the definition has nodes.</p>;
  const chosen = nodes.find(({ from, to }) => cursor >= from && cursor <= to)?.id;
  const show = (id: string | undefined) => {
    const node = nodes.find((one) => one.id === (id ?? chosen));
    if (node) onShow(node.from);
  };
  return <Graph workflow={workflow} chosen={chosen} onChoose={show} />;
}

/** The graph, if the text is a definition whose nodes have names and kinds. */
function readGraph(text: string): Record<string, unknown> | undefined {
  try {
    const { workflow } = readDefinition(text) as { workflow?: Record<string, unknown> };
    const nodes = Array.isArray(workflow?.nodes) ? workflow.nodes : [];
    const known = nodes.filter(isNode);
    const isWhole = known.length > 0 && new Set(known.map(({ id }) => id)).size === known.length;
    return isWhole ? { ...workflow, nodes: known } : undefined;
  } catch {
    return undefined;
  }
}

function isNode(node: unknown): node is { id: string; kind: string } {
  const { id, kind } = (node ?? {}) as { id?: unknown; kind?: unknown };
  return typeof id === 'string' && typeof kind === 'string';
}
