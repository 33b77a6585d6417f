import { Empty } from '../ui/basics.tsx';
import { type GraphEdge, layOut, nodeHeight, nodeWidth, type Placed } from './layout.ts';

/** What has become of a node in a run. */
export type NodeState = 'idle' | 'running' | 'waiting' | 'done' | 'failed';

const stateWords: Record<NodeState, string> = {
  ...{ idle: 'not reached', running: 'running', waiting: 'waiting', done: 'done', failed: 'failed' },
};

/** The graph of a workflow; in a run each node shows its state and can be chosen. */
export function Graph({
  workflow,
  states,
  chosen,
  onChoose,
}: {
  workflow: Record<string, unknown> | null;
  states?: Map<string, NodeState>;
  chosen?: string | undefined;
  onChoose?: (node: string | undefined) => void;
}) {
  if (workflow === null)
    return (
      <Empty title="No graph">
        A program of yours works these runs: it claims them and reports on them through the API.
      </Empty>
    );
  const { placed, edges, width, height } = layOut(workflow);
  const byId = new Map(placed.map((one) => [one.node.id, one]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <div className="scroll-x" tabIndex={0}>
      <svg
        className="graph"
        role="group"
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        aria-label="Graph of the workflow"
      >
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0 8 4 0 8z" />
          </marker>
        </defs>
        {edges.map((edge) => (
          <Edge key={`${edge.from} ${edge.kind}`} edge={edge} from={byId.get(edge.from)} to={byId.get(edge.to)} />
        ))}
        {placed.map(({ node, x, y }) => {
          const state = states?.get(node.id) ?? 'idle';
          const label = states ? `${node.id}, ${node.kind}, ${stateWords[state]}` : `${node.id}, ${node.kind}`;
          const shape = (
            <>
              <rect width={nodeWidth} height={nodeHeight} rx="9" />
              <text x="14" y="22" className="name">
                {shorten(node.id)}
              </text>
              <text x="14" y="39" className="kind">
                {node.kind.replaceAll('_', ' ')}
                {states ? ` · ${stateWords[state]}` : ''}
              </text>
            </>
          );
          const classes = `node ${states ? state : 'plain'} ${chosen === node.id ? 'chosen' : ''}`;
          if (!onChoose)
            return (
              <g key={node.id} className={classes} transform={`translate(${x} ${y})`} role="img" aria-label={label}>
                {shape}
              </g>
            );
          const choose = () => onChoose(chosen === node.id ? undefined : node.id);
          return (
            // biome-ignore lint/a11y/useSemanticElements: there is no button inside SVG
            <g
              key={node.id}
              className={classes}
              transform={`translate(${x} ${y})`}
              role="button"
              tabIndex={0}
              aria-label={label}
              aria-pressed={chosen === node.id}
              onClick={choose}
              onKeyDown={(event) => {
                if (event.key !== 'Enter' && event.key !== ' ') return;
                event.preventDefault();
                choose();
              }}
            >
              {shape}
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function Edge({ edge, from, to }: { edge: GraphEdge; from: Placed | undefined; to: Placed | undefined }) {
  if (!from || !to) return null;
  const down = to.y > from.y;
  const [x1, y1] = [from.x + nodeWidth / 2, from.y + nodeHeight];
  const [x2, y2] = [to.x + nodeWidth / 2, to.y];
  // An edge back runs round the side.
  const side = Math.max(from.x, to.x) + nodeWidth + 18;
  const path = down
    ? `M${x1} ${y1}C${x1} ${y1 + 24} ${x2} ${y2 - 24} ${x2} ${y2}`
    : `M${from.x + nodeWidth} ${from.y + nodeHeight / 2}C${side} ${from.y} ${side} ${to.y + nodeHeight} ${to.x + nodeWidth} ${to.y + nodeHeight / 2}`;
  const [labelX, labelY] = down ? [(x1 + x2) / 2 + 6, (y1 + y2) / 2 + 4] : [side - 6, (from.y + to.y) / 2 + 24];
  return (
    <g className={`edge ${edge.kind}`}>
      <path d={path} markerEnd="url(#arrow)" />
      {edge.kind === 'success' ? null : (
        <text x={labelX} y={labelY}>
          {edge.kind}
        </text>
      )}
    </g>
  );
}

function shorten(text: string): string {
  return text.length > 20 ? `${text.slice(0, 19)}…` : text;
}
