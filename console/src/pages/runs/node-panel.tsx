import { Link } from 'wouter';
import { useSession } from '../../session.tsx';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/code.tsx';
import { Id } from '../../ui/copy.tsx';
import { duration } from '../../ui/format.ts';
import { Details } from '../../ui/page.tsx';
import { State } from '../../ui/state.tsx';
import { Time } from '../../ui/time.tsx';
import type { Execution, Waiting } from './run-state.ts';
import { ModelCalls, ToolCalls } from './tool-calls.tsx';

/** What one execution of a node received, returned, waits for and failed with. */
export function NodePanel({
  run,
  execution,
  executions,
  onChoose,
  onAgain,
  onClose,
}: {
  run: string;
  execution: Execution;
  /** All of the run, among them the calls of tools of this one. */
  executions: Execution[];
  onChoose: (command: string) => void;
  /** Offers to run again from this node; absent where that is not possible. */
  onAgain: (() => void) | undefined;
  onClose: () => void;
}) {
  const { isDeveloper } = useSession();
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
      <ToolCalls execution={execution} executions={executions} onChoose={onChoose} />
      {isDeveloper && mayHaveCalled(execution) ? <ModelCalls run={run} node={nodeId} /> : null}
      {output === undefined ? null : (
        <>
          <h3>Output</h3>
          <Json value={output} label={`Output of ${nodeId}`} />
        </>
      )}
    </section>
  );
}

/** A node that has asked a language model, or asks one now: only `generate` nodes have messages and usage. */
function mayHaveCalled({ input, output }: Execution): boolean {
  const has = (value: unknown, member: string) => typeof value === 'object' && value !== null && member in value;
  return has(input, 'messages') || has(output, 'usage');
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
