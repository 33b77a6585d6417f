/** A node of a workflow graph as definitions have it; only what a drawing needs. */
export type GraphNode = {
  id: string;
  kind: string;
  on_success?: string;
  on_error?: string;
  on_true?: string;
  on_false?: string;
  on_timeout?: string;
};
export type GraphEdge = { from: string; to: string; kind: 'success' | 'error' | 'true' | 'false' | 'timeout' };
export type Placed = { node: GraphNode; x: number; y: number };
export type Layout = { placed: Placed[]; edges: GraphEdge[]; width: number; height: number };

export const nodeWidth = 168;
export const nodeHeight = 52;
const gapX = 40;
const gapY = 44;

/**
 * Nodes in rows by their longest way from the start (edges back are not followed), each row ordered by where its
 * predecessors stand: the layered drawing of Sugiyama, without its dummy nodes.
 */
export function layOut(workflow: Record<string, unknown> | null): Layout {
  const nodes = (Array.isArray(workflow?.nodes) ? workflow.nodes : []) as GraphNode[];
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const edges = nodes.flatMap((node) => edgesOf(node)).filter(({ to }) => byId.has(to));
  const rowOf = rowsByLongestWay(nodes, edges, String(workflow?.start_node ?? nodes[0]?.id ?? ''));
  const rows: GraphNode[][] = [];
  for (const node of nodes) {
    const row = rowOf.get(node.id) ?? 0;
    rows[row] = [...(rows[row] ?? []), node];
  }
  const widest = Math.max(1, ...rows.map((row) => row?.length ?? 0));
  const width = widest * (nodeWidth + gapX) + gapX;
  const xOf = new Map<string, number>();
  const placed: Placed[] = [];
  for (const [at, row] of rows.entries()) {
    const wish = (node: GraphNode) => {
      const above = edges.filter(({ from, to }) => to === node.id && (rowOf.get(from) ?? 0) < at);
      const places = above.map(({ from }) => xOf.get(from) ?? 0);
      return places.length === 0 ? 0 : places.reduce((sum, x) => sum + x, 0) / places.length;
    };
    const ordered = [...(row ?? [])].sort((a, b) => wish(a) - wish(b));
    const used = ordered.length * (nodeWidth + gapX) - gapX;
    for (const [column, node] of ordered.entries()) {
      const x = (width - used) / 2 + column * (nodeWidth + gapX);
      xOf.set(node.id, x);
      placed.push({ node, x, y: gapY / 2 + at * (nodeHeight + gapY) });
    }
  }
  return { placed, edges, width, height: rows.length * (nodeHeight + gapY) };
}

function edgesOf(node: GraphNode): GraphEdge[] {
  const ways = {
    success: node.on_success,
    true: node.on_true,
    false: node.on_false,
    timeout: node.on_timeout,
    error: node.on_error,
  };
  return Object.entries(ways).flatMap(([kind, to]) =>
    to === undefined ? [] : [{ from: node.id, to, kind: kind as GraphEdge['kind'] }],
  );
}

function rowsByLongestWay(nodes: GraphNode[], edges: GraphEdge[], start: string): Map<string, number> {
  const next = new Map(nodes.map(({ id }) => [id, edges.filter(({ from }) => from === id).map(({ to }) => to)]));
  const back = edgesBack(next, start);
  const rows = new Map<string, number>([[start, 0]]);
  // No way without an edge back is longer than there are nodes.
  for (let round = 0; round < nodes.length; round++) {
    let moved = false;
    for (const [from, tos] of next)
      for (const to of tos) {
        const row = rows.get(from);
        if (row === undefined || back.has(`${from} ${to}`) || (rows.get(to) ?? -1) > row) continue;
        rows.set(to, row + 1);
        moved = true;
      }
    if (!moved) break;
  }
  return rows;
}

/** Edges that lead to a node on the way to them. */
function edgesBack(next: Map<string, string[]>, start: string): Set<string> {
  const back = new Set<string>();
  const done = new Set<string>();
  const open = new Set<string>();
  const visit = (id: string) => {
    open.add(id);
    for (const to of next.get(id) ?? []) {
      if (open.has(to)) back.add(`${id} ${to}`);
      else if (!done.has(to)) visit(to);
    }
    open.delete(id);
    done.add(id);
  };
  visit(start);
  return back;
}
