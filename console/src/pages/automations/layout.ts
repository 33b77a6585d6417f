/** The members of a node in a workflow definition that drawing needs. */
export type GraphNode = {
  id: string;
  kind: string;
  on_success?: string;
  on_error?: string;
  on_true?: string;
  on_false?: string;
  on_timeout?: string;
};
type GraphEdge = { from: string; to: string; kind: 'success' | 'error' | 'true' | 'false' | 'timeout' };
export type Placed = { node: GraphNode; x: number; y: number };
/** An edge, with its positions in the rows that it passes. */
export type Routed = { edge: GraphEdge; through: { x: number; y: number }[] };
type Layout = { placed: Placed[]; edges: Routed[]; width: number; height: number };

export const nodeWidth = 180;
export const nodeHeight = 52;
const gapX = 36;
const gapY = 46;
/** The width of an edge in a row that it passes. */
const passWidth = 20;

type Cell = { name: string; width: number; node?: GraphNode };

/**
 * Sugiyama's layered layout: each node is in a row by its longest path from the start (without back edges), each row
 * is ordered by the positions of predecessors, and an edge across several rows has a position in each.
 */
export function layOut(workflow: Record<string, unknown> | null): Layout {
  const nodes = (Array.isArray(workflow?.nodes) ? workflow.nodes : []) as GraphNode[];
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const edges = nodes.flatMap((node) => edgesOf(node)).filter(({ to }) => byId.has(to));
  const rowOf = rowsByLongestWay(nodes, edges, String(workflow?.start_node ?? nodes[0]?.id ?? ''));
  const rows: Cell[][] = [];
  const above = new Map<string, string[]>();
  const add = (row: number, cell: Cell) => {
    rows[row] = [...(rows[row] ?? []), cell];
  };
  for (const node of nodes) add(rowOf.get(node.id) ?? 0, { name: node.id, width: nodeWidth, node });
  const passes = new Map<GraphEdge, string[]>();
  for (const edge of edges) {
    const [from, to] = [rowOf.get(edge.from) ?? 0, rowOf.get(edge.to) ?? 0];
    let last = edge.from;
    const names: string[] = [];
    for (let row = from + 1; row < to; row++) {
      const name = `${edge.from} ${edge.kind} ${row}`;
      add(row, { name, width: passWidth });
      above.set(name, [last]);
      names.push(name);
      last = name;
    }
    passes.set(edge, names);
    if (to > from) above.set(edge.to, [...(above.get(edge.to) ?? []), last]);
  }
  const widthOf = (row: Cell[]) => row.reduce((sum, cell) => sum + cell.width + gapX, -gapX);
  const width = Math.max(nodeWidth, ...rows.map((row) => widthOf(row ?? []))) + gapX * 2;
  const middles = new Map<string, { x: number; y: number }>();
  const placed: Placed[] = [];
  for (const [at, row = []] of rows.entries()) {
    const wish = ({ name }: Cell) => {
      const places = (above.get(name) ?? []).map((other) => middles.get(other)?.x ?? 0);
      return places.length === 0 ? 0 : places.reduce((sum, x) => sum + x, 0) / places.length;
    };
    const ordered = row.map((cell) => ({ cell, at: wish(cell) })).sort((a, b) => a.at - b.at);
    let x = (width - widthOf(row)) / 2;
    const y = gapY / 2 + at * (nodeHeight + gapY);
    for (const { cell } of ordered) {
      middles.set(cell.name, { x: x + cell.width / 2, y: y + nodeHeight / 2 });
      if (cell.node) placed.push({ node: cell.node, x, y });
      x += cell.width + gapX;
    }
  }
  const routed = edges.map((edge) => ({
    edge,
    through: (passes.get(edge) ?? []).flatMap((name) => middles.get(name) ?? []),
  }));
  return { placed, edges: routed, width, height: rows.length * (nodeHeight + gapY) };
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
  // A path without back edges is not longer than the number of nodes.
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

/** Finds the edges that lead back to a node on the current path. */
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
