import { Link } from 'wouter';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/code.tsx';
import { Id } from '../../ui/copy.tsx';
import { duration } from '../../ui/format.ts';
import { Details } from '../../ui/page.tsx';
import { State } from '../../ui/state.tsx';
import { Time } from '../../ui/time.tsx';
import type { Execution, Waiting } from './run-state.ts';

/** What one execution of a node received, returned, waits for and failed with. */
export function NodePanel({
  execution,
  onAgain,
  onClose,
}: {
  execution: Execution;
  /** Offers to run again from this node; absent where that is not possible. */
  onAgain: (() => void) | undefined;
  onClose: () => void;
}) {
  const { nodeId, index, state, attempts, startedAt, endedAt, input, output, error } = execution;
  return (
    <section className="card" aria-label={`Node ${nodeId}`}>
      <div className="toolbar">
        <h2>
          {nodeId}
          {index === undefined ? '' : ` [${index}]`}
        </h2>
        <State value={state} />
        {onAgain ? <Button onClick={onAgain}>Run again from here</Button> : null}
        <Button kind="quiet" onClick={onClose}>
          Close
        </Button>
      </div>
      <Details
        rows={[
          ['Attempts', attempts],
          ['Began', <Time key="began" at={startedAt} />],
          ['Took', endedAt === undefined ? null : duration(Date.parse(endedAt) - Date.parse(startedAt))],
          ['Waits for', execution.waits ? <Waits key="waits" waits={execution.waits} /> : null],
          [
            'Started',
            execution.children.length === 0 ? null : (
              <span key="children" className="stack tight">
                {execution.children.map((id) => (
                  <Child key={id} id={id} />
                ))}
              </span>
            ),
          ],
        ]}
      />
      {error ? (
        <div className="notice error">
          <p>
            <strong>{error.code}</strong> {error.message}
          </p>
        </div>
      ) : null}
      {input === undefined ? null : (
        <>
          <h3>Input</h3>
          <Json value={input} label={`Input of ${nodeId}`} />
        </>
      )}
      {output === undefined ? null : (
        <>
          <h3>Output</h3>
          <Json value={output} label={`Output of ${nodeId}`} />
        </>
      )}
    </section>
  );
}

export function Waits({ waits }: { waits: Waiting }) {
  const until =
    'until' in waits && waits.until !== undefined ? (
      <>
        {' '}
        <Time at={waits.until} />
      </>
    ) : null;
  switch (waits.kind) {
    case 'signal':
      return (
        <span>
          the signal <code>{waits.name}</code>
          {until ? <>, at most until {until}</> : null}
        </span>
      );
    case 'approval':
      return (
        <span>
          <Link href="/approvals">an approval</Link>
          {until ? <>, at most until {until}</> : null}
        </span>
      );
    case 'retry':
      return <span>the next attempt{until}</span>;
    case 'time':
      return <span>a time{until}</span>;
    case 'child':
      return <Child id={waits.id} />;
  }
}

const childPages: Record<string, string> = { atr: '/runs', ext: '/extractions' };

/** A run, an extraction or an ingestion that a node has started. */
function Child({ id }: { id: string }) {
  const path = childPages[id.slice(0, 3)];
  if (path === undefined) return <Id id={id} />;
  return (
    <Link href={`${path}/${id}`}>
      <code>{id}</code>
    </Link>
  );
}
