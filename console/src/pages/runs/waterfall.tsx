import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import { duration } from '../../ui/format.ts';
import { Scroll } from '../../ui/scroll.tsx';
import type { Execution } from './run-state.ts';
import './waterfall.css';

const rowHeight = 30;
const rowsShown = 14;

/** Every execution of a node as a bar over the run's time. Executions inside a node are indented below it. */
export function Waterfall({
  executions,
  from,
  to,
  chosen,
  onChoose,
}: {
  executions: Execution[];
  from: number;
  to: number;
  chosen: string | undefined;
  onChoose: (command: string | undefined) => void;
}) {
  const rows = inOrder(executions);
  const host = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => host.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  });
  const span = Math.max(to - from, 1);
  const place = (at: number) => `${Math.min(100, Math.max(0, ((at - from) / span) * 100))}%`;
  return (
    <Scroll
      ref={host}
      className="waterfall"
      label="Waterfall of the run"
      style={{ height: Math.min(rows.length, rowsShown) * rowHeight + 2 }}
    >
      <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const row = rows[index];
          if (!row) return null;
          const { execution, depth } = row;
          const begun = Date.parse(execution.startedAt);
          const ended = execution.endedAt === undefined ? to : Date.parse(execution.endedAt);
          const took = duration(ended - begun);
          return (
            <button
              key={execution.commandId}
              type="button"
              className={`bar-row ${execution.state}`}
              style={{ transform: `translateY(${start}px)`, height: rowHeight }}
              aria-pressed={chosen === execution.commandId}
              onClick={() => onChoose(chosen === execution.commandId ? undefined : execution.commandId)}
            >
              <span className="cut" style={{ paddingLeft: depth * 14 }}>
                {execution.nodeId}
                {execution.index === undefined ? null : <span className="faint"> [{execution.index}]</span>}
              </span>
              <span className="track" aria-hidden="true">
                <span
                  className="bar-fill"
                  style={{ left: place(begun), width: `max(3px, calc(${place(ended)} - ${place(begun)}))` }}
                />
              </span>
              <span className="faint">
                <span className="hidden">{execution.state}, </span>
                {execution.attempts > 1 ? `${execution.attempts} attempts · ` : ''}
                {took}
              </span>
            </button>
          );
        })}
      </div>
    </Scroll>
  );
}

/** Each node followed by those inside it, in the order of their index. */
function inOrder(executions: Execution[]): { execution: Execution; depth: number }[] {
  const inside = new Map<string | undefined, Execution[]>();
  for (const one of executions) inside.set(one.parent, [...(inside.get(one.parent) ?? []), one]);
  const rows: { execution: Execution; depth: number }[] = [];
  const visit = (parent: string | undefined, depth: number) => {
    const found = [...(inside.get(parent) ?? [])].sort((a, b) => (a.index ?? 0) - (b.index ?? 0));
    for (const execution of found) {
      rows.push({ execution, depth });
      visit(execution.commandId, depth + 1);
    }
  };
  visit(undefined, 0);
  return rows;
}
