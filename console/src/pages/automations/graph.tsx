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
        style={{ width: '100%', minWidth: Math.min(width, Math.max(narrowestPx, width * 0.6)), maxWidth: width }}
        viewBox={`0 0 ${width} ${height}`}
        aria-label="Graph of the workflow"
      >
        <defs>
          {['arrow', 'arrow-taken'].map((id) => (
            <marker
              key={id}
              id={id}
              className={id}
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="7"
              markerHeight="7"
              markerUnits="userSpaceOnUse"
              orient="auto"
            >
              <path d="M0 0 8 4 0 8z" />
            </marker>
          ))}
        </defs>
        {edges.map((routed) => (
          <Edge
            key={`${routed.edge.from} ${routed.edge.kind}`}
            routed={routed}
            from={byId.get(routed.edge.from)}
            to={byId.get(routed.edge.to)}
            taken={states !== undefined && isTaken(routed.edge, states)}
          />
        ))}
        {placed.map(({ node, x, y }) => {
          const state = states?.get(node.id) ?? 'idle';
          const kind = node.kind.replaceAll('_', ' ');
          const label = states ? `${node.id} ${kind} · ${stateWords[state]}` : `${node.id} ${kind}`;
          const shape = (
            <>
              <rect width={nodeWidth} height={nodeHeight} rx="8" />
              <text x="14" y="22" className="name">
                {shorten(node.id)}
              </text>{' '}
              <text x="14" y="39" className="kind">
                {states ? `${kind} · ${stateWords[state]}` : kind}
              </text>
              {states ? <Mark state={state} /> : null}
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

/** The width of a phone, to which a small graph shrinks. A large one shrinks to three fifths, and then scrolls. */
const narrowestPx = 312;

/** Whether the run went this way: the node ended as the edge says, and the next one was reached. */
function isTaken({ from, to, kind }: Routed['edge'], states: Map<string, NodeState>): boolean {
  const [before, after] = [states.get(from) ?? 'idle', states.get(to) ?? 'idle'];
  if (before === 'idle' || after === 'idle') return false;
  return kind === 'error' ? before === 'failed' : before === 'done';
}

const marks: Partial<Record<NodeState, string>> = {
  ...{ done: 'M-3.5 0.2 -1 2.7 3.5 -2.3', failed: 'M-2.6 -2.6 2.6 2.6M2.6 -2.6 -2.6 2.6' },
  ...{ waiting: 'M0 -3.4V0L2.4 1.6', retrying: 'M0 -3.4V0L2.4 1.6', running: 'M-3 0H3' },
  cancelled: 'M-3 0H3',
};

/** The state of a node as a sign in its corner. */
function Mark({ state }: { state: NodeState }) {
  const sign = marks[state];
  if (sign === undefined) return null;
  return (
    <g className="mark" transform={`translate(${nodeWidth - 20} ${nodeHeight / 2})`}>
      <circle r="8" />
      <path d={sign} />
    </g>
  );
}

function Edge({
  routed: { edge, through },
  from,
  to,
  taken,
}: {
  routed: Routed;
  from: Placed | undefined;
  to: Placed | undefined;
  taken: boolean;
}) {
  if (!from || !to) return null;
  if (to.y <= from.y) return <EdgeBack kind={edge.kind} from={from} to={to} taken={taken} />;
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
    <g className={`edge ${edge.kind} ${taken ? 'taken' : ''}`}>
      <path d={path.join('')} markerEnd={taken ? 'url(#arrow-taken)' : 'url(#arrow)'} />
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
function EdgeBack({ kind, from, to, taken }: { kind: string; from: Placed; to: Placed; taken: boolean }) {
  const side = Math.max(from.x, to.x) + nodeWidth + 24;
  const [startX, startY] = [from.x + nodeWidth, from.y + nodeHeight / 2];
  const [endX, endY] = [to.x + nodeWidth, to.y + nodeHeight / 2];
  return (
    <g className={`edge ${kind} ${taken ? 'taken' : ''}`}>
      <path
        d={`M${startX} ${startY}C${side} ${startY} ${side} ${endY} ${endX} ${endY}`}
        markerEnd={taken ? 'url(#arrow-taken)' : 'url(#arrow)'}
      />
      {kind === 'success' ? null : (
        <text x={side - 14} y={(startY + endY) / 2}>
          {kind}
        </text>
      )}
    </g>
  );
}

function shorten(text: string): string {
  return text.length > 18 ? `${text.slice(0, 17)}…` : text;
}
