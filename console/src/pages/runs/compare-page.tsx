import { useMemo } from 'react';
import { Link } from 'wouter';
import type { AutomationRun } from '../../api/generated.ts';
import { Json } from '../../ui/code.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { useApi } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import './compare.css';
import { took } from './run-page.tsx';
import { type Execution, foldRun } from './run-state.ts';
import { useJournal } from './use-journal.ts';

/** A run beside the one that it continues: node by node, what each returned. */
export function ComparePage({ id }: { id: string }) {
  const run = useApi('GET /api/v1/automation_runs/{automation_run}', { path: { automation_run: id } });
  return (
    <>
      <PageHead title="Two runs" lead="What each node returned in the earlier run and in the later one." />
      <Shown loaded={run}>
        {(later) =>
          later.retried_from === undefined ? (
            <Empty title="Nothing to compare">This run does not continue another one.</Empty>
          ) : (
            <Pair later={later} earlierId={later.retried_from} />
          )
        }
      </Shown>
    </>
  );
}

function Pair({ later, earlierId }: { later: AutomationRun; earlierId: string }) {
  const earlier = useApi('GET /api/v1/automation_runs/{automation_run}', { path: { automation_run: earlierId } });
  return <Shown loaded={earlier}>{(found) => <Comparison earlier={found} later={later} />}</Shown>;
}

function Comparison({ earlier, later }: { earlier: AutomationRun; later: AutomationRun }) {
  const first = useNodes(earlier);
  const second = useNodes(later);
  const nodes = [...new Set([...first.byNode.keys(), ...second.byNode.keys()])];
  return (
    <table className="compare" aria-label="Comparison">
      <thead>
        <tr>
          <th scope="col">Node</th>
          {[earlier, later].map((run) => (
            <th key={run.id} scope="col">
              <Link href={`/runs/${run.id}`}>{run === earlier ? 'Earlier run' : 'Later run'}</Link>{' '}
              <State value={run.status} /> {took(run)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {nodes.map((node) => {
          const one = first.byNode.get(node);
          const other = second.byNode.get(node);
          return (
            <tr key={node} className={JSON.stringify(shownOf(one)) === JSON.stringify(shownOf(other)) ? '' : 'differs'}>
              <th scope="row">{node}</th>
              <td>
                <Outcome of={one} />
              </td>
              <td>
                {other !== undefined && second.kept.has(other.commandId) ? <span className="faint">kept </span> : null}
                <Outcome of={other} />
              </td>
            </tr>
          );
        })}
        <tr>
          <th scope="row">Result</th>
          {[earlier, later].map((run) => (
            <td key={run.id}>
              <Json value={run.error ?? run.result ?? null} label={`Result of ${run.id}`} />
            </td>
          ))}
        </tr>
      </tbody>
    </table>
  );
}

function useNodes(run: AutomationRun) {
  const { entries } = useJournal(run.id, `${run.status}/${run.updated_at}`);
  return useMemo(() => {
    const copied = entries.filter(({ record }) => (record.metadata as { copied_from?: unknown })?.copied_from);
    return { ...foldRun(entries, run), kept: new Set(copied.map(({ command_id }) => command_id)) };
  }, [entries, run]);
}

const shownOf = (one: Execution | undefined) => one && [one.state, one.output ?? one.error];

function Outcome({ of: one }: { of: Execution | undefined }) {
  if (one === undefined) return <span className="faint">did not run</span>;
  const value = one.error ?? one.output;
  return (
    <>
      <State value={one.state} />
      {value === undefined ? null : <Json value={value} label={`${one.nodeId}: ${one.state}`} />}
    </>
  );
}
