import { Link } from 'wouter';
import type { AutomationRun } from '../../api/generated.ts';
import { bytes } from '../../ui/format.ts';
import { useApi } from '../../ui/query.ts';
import { isOver } from './run-state.ts';

const pollMs = 2_000;

/** The files that the run made so far. Mount it again when the status of the run changes. */
export function MadeFiles({ run }: { run: AutomationRun }) {
  const poll = () => (isOver(run) ? undefined : pollMs);
  const { data } = useApi('GET /api/v1/files', { query: { automation_run: run.id } }, { poll });
  if (data === undefined || data.data.length === 0) return null;
  const more = data.total_entries - data.data.length;
  return (
    <section className="card" aria-label="Files">
      <h2>Files that it made</h2>
      <ul>
        {data.data.map(({ id, filename, size }) => (
          <li key={id}>
            <Link href={`/files/${id}`}>{filename}</Link> <span className="faint">{bytes(size)}</span>
          </li>
        ))}
      </ul>
      {more > 0 ? <p className="faint">and {more} more</p> : null}
    </section>
  );
}
