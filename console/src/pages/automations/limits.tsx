import { Link } from 'wouter';
import type { Automation } from '../../api/generated.ts';
import { count } from '../../ui/format.ts';
import { useApi } from '../../ui/query.ts';
import { PendingFor } from '../runs/pending-for.tsx';

const pollMs = 2_000;

/** The limits of an automation in words; none for an automation without limits. */
function limitsOf({ max_concurrent_runs, max_pending_runs, concurrency, rate }: Automation): string[] {
  const lines: string[] = [];
  if (rate)
    lines.push(
      `At most ${count(rate.limit, 'run')} ${startWord(rate.limit)} in ${timeWords(rate.per)}${each(rate.key)}.`,
    );
  if (concurrency) lines.push(`At most ${count(concurrency.limit, 'run')} active${each(concurrency.key)}.`);
  if (max_concurrent_runs !== undefined) lines.push(`At most ${count(max_concurrent_runs, 'run')} active in all.`);
  if (max_pending_runs !== undefined) lines.push(`At most ${count(max_pending_runs, 'run')} wait; more are refused.`);
  return lines;
}

/** What limits the runs of an automation, and how many wait because of it. */
export function Limits({ automation }: { automation: Automation }) {
  const lines = limitsOf(automation);
  const path = { automation: automation.id };
  const waiting = useApi(
    'GET /api/v1/automations/{automation}/runs',
    { path, query: { status: 'pending', page_size: 1 } },
    { poll: () => pollMs, enabled: lines.length > 0, keep: true },
  );
  const total = waiting.data?.total_entries ?? 0;
  if (lines.length === 0) return null;
  return (
    <section className="card" aria-label="Limits">
      <h2>Limits</h2>
      <ul className="limits">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      {waiting.data === undefined ? null : total === 0 ? (
        <p className="faint">No run waits for its turn.</p>
      ) : (
        <p role="status">
          <Link href={`/automations/${automation.id}?status=pending`}>
            {count(total, 'run')} {total === 1 ? 'waits' : 'wait'} for {total === 1 ? 'its' : 'their'} turn
          </Link>
          . <Oldest automation={automation.id} total={total} />
        </p>
      )}
    </section>
  );
}

/** When the run starts that has waited the longest. */
function Oldest({ automation, total }: { automation: string; total: number }) {
  const query = { status: 'pending' as const, page_size: 1, page: total };
  const last = useApi('GET /api/v1/automations/{automation}/runs', { path: { automation }, query }, { keep: true });
  const id = last.data?.data[0]?.id ?? '';
  const run = useApi(
    'GET /api/v1/automation_runs/{automation_run}',
    { path: { automation_run: id } },
    { enabled: id !== '', poll: () => pollMs, keep: true },
  );
  if (run.data?.pending_for === undefined) return null;
  return (
    <>
      The <Link href={`/runs/${id}`}>oldest</Link> <PendingFor pending={run.data.pending_for} />
    </>
  );
}

const units: Record<string, string> = { s: 'second', m: 'minute', h: 'hour', d: 'day' };

function timeWords(per: string): string {
  const number = Number(per.slice(0, -1));
  const unit = units[per.slice(-1)] ?? per;
  return number === 1 ? `any ${unit}` : `any ${number} ${unit}s`;
}

function each(key: string | undefined): string {
  return key === undefined ? '' : ` for each ${key}`;
}

function startWord(number: number): string {
  return number === 1 ? 'starts' : 'start';
}
