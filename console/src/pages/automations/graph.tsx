import { Empty } from '../../ui/page.tsx';
import { Scroll } from '../../ui/scroll.tsx';
import type { NodeState } from '../runs/run-state.ts';
import './graph.css';
import { layOut, nodeHeight, nodeWidth, type Placed, type Routed } from './layout.ts';

const stateWords: Record<NodeState, string> = {
  ...{ idle: 'not reached', running: 'running', waiting: 'waiting', retrying: 'waits to retry', done: 'done' },
  ...{ failed: 'failed', cancelled: 'cancelled' },
};

/** The graph of a workflow. In a run, each node shows its state and can be selected. */
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
        Your own program executes these runs: it claims them and reports their outcome through the API.
      </Empty>
    );
  const { placed, edges, width, height } = layOut(workflow);
  const byId = new Map(placed.map((one) => [one.node.id, one]));
  return (
    <Scroll label="Graph, scrollable" className="scroll-x">
      {/* biome-ignore lint/a11y/useSemanticElements: there is no fieldset inside SVG */}
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
        {edges.map((routed) => (
          <Edge
            key={`${routed.edge.from} ${routed.edge.kind}`}
            routed={routed}
            from={byId.get(routed.edge.from)}
            to={byId.get(routed.edge.to)}
          />
        ))}
        {placed.map(({ node, x, y }) => {
          const state = states?.get(node.id) ?? 'idle';
          const kind = node.kind.replaceAll('_', ' ');
          const label = states ? `${node.id} ${kind} · ${stateWords[state]}` : `${node.id} ${kind}`;
          const shape = (
            <>
              <rect width={nodeWidth} height={nodeHeight} rx="9" />
              <text x="14" y="22" className="name">
                {shorten(node.id)}
              </text>{' '}
              <text x="14" y="39" className="kind">
                {states ? `${kind} · ${stateWords[state]}` : kind}
              </text>
            </>
          );
          const classes = `node ${states ? state : 'plain'} ${chosen === node.id ? 'chosen' : ''}`;
          if (!onChoose)
            return (
              <g key={node.id} className={classes} transform={`translate(${x} ${y})`}>
                <title>{label}</title>
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
    </Scroll>
  );
}

function Edge({
  routed: { edge, through },
  from,
  to,
}: {
  routed: Routed;
  from: Placed | undefined;
  to: Placed | undefined;
}) {
  if (!from || !to) return null;
  if (to.y <= from.y) return <EdgeBack kind={edge.kind} from={from} to={to} />;
  const points = [
    { x: from.x + nodeWidth / 2, y: from.y + nodeHeight },
    ...through.flatMap(({ x, y }) => [
      { x, y: y - nodeHeight / 2 },
      { x, y: y + nodeHeight / 2 },
    ]),
    { x: to.x + nodeWidth / 2, y: to.y },
  ];
  const [first = { x: 0, y: 0 }, second = first] = points;
  const path = points.map(({ x, y }, at) => {
    const before = points[at - 1];
    return before ? `C${before.x} ${(before.y + y) / 2} ${x} ${(before.y + y) / 2} ${x} ${y}` : `M${x} ${y}`;
  });
  const left = second.x < first.x;
  return (
    <g className={`edge ${edge.kind}`}>
      <path d={path.join('')} markerEnd="url(#arrow)" />
      {edge.kind === 'success' ? null : (
        <text
          x={(first.x + second.x) / 2 + (left ? -8 : 8)}
          y={(first.y + second.y) / 2 + 4}
          textAnchor={left ? 'end' : 'start'}
        >
          {edge.kind}
        </text>
      )}
    </g>
  );
}

/** A back edge is drawn around the side. */
function EdgeBack({ kind, from, to }: { kind: string; from: Placed; to: Placed }) {
  const side = Math.max(from.x, to.x) + nodeWidth + 24;
  const [startX, startY] = [from.x + nodeWidth, from.y + nodeHeight / 2];
  const [endX, endY] = [to.x + nodeWidth, to.y + nodeHeight / 2];
  return (
    <g className={`edge ${kind}`}>
      <path d={`M${startX} ${startY}C${side} ${startY} ${side} ${endY} ${endX} ${endY}`} markerEnd="url(#arrow)" />
      {kind === 'success' ? null : (
        <text x={side - 14} y={(startY + endY) / 2}>
          {kind}
        </text>
      )}
    </g>
  );
}

function shorten(text: string): string {
  return text.length > 20 ? `${text.slice(0, 19)}…` : text;
}
