import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { count } from '../../ui/format.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useApi } from '../../ui/query.ts';
import { Time } from '../../ui/time.tsx';

const dayMs = 24 * 3_600_000;
const shownMax = 6;
type Item = { key: string; tone: 'bad' | 'waiting'; text: ReactNode; detail: ReactNode; at?: string | undefined };

/** What waits for a person, and what failed in the last day. */
export function Attention() {
  const since = new Date(Math.floor(Date.now() / 60_000) * 60_000 - dayMs).toISOString();
  const approvals = useApi(
    'GET /api/v1/approvals',
    { query: { status: 'waiting', page_size: shownMax } },
    { poll: () => 4_000 },
  );
  const runs = useApi('GET /api/v1/automation_runs', { query: { status: 'failed', since, limit: shownMax } });
  const extractions = useApi('GET /api/v1/extractions', { query: { state: 'failed', page_size: 5 } });
  const jobs = useApi('GET /api/v1/jobs', { query: { page_size: 1 } });
  const waiting = approvals.data?.total_entries ?? 0;
  const setAside = jobs.data?.total_entries ?? 0;
  const items: Item[] = [];
  if (waiting > 0)
    items.push({
      ...{ key: 'approvals', tone: 'waiting', at: approvals.data?.data[0]?.created_at },
      text: <Link href="/approvals">{count(waiting, 'approval')} waiting</Link>,
      detail: approvals.data?.data[0]?.question,
    });
  if (setAside > 0)
    items.push({
      ...{ key: 'jobs', tone: 'bad', detail: 'They failed in ways that need you' },
      text: <Link href="/jobs">{count(setAside, 'job')} set aside</Link>,
    });
  for (const run of runs.data?.data ?? [])
    items.push({
      ...{ key: run.id, tone: 'bad', detail: run.error?.message, at: run.completed_at ?? run.created_at },
      text: <Link href={`/runs/${run.id}`}>{run.automation_name}</Link>,
    });
  for (const found of extractions.data?.data ?? [])
    if (Date.parse(found.created_at) > Date.now() - dayMs)
      items.push({
        ...{ key: found.id, tone: 'bad', detail: found.error?.message ?? found.url, at: found.created_at },
        text: <Link href={`/extractions/${found.id}`}>Extraction</Link>,
      });
  const isKnown = approvals.data && runs.data && extractions.data;
  return (
    <section className="card" aria-label="Needs attention">
      <div className="toolbar">
        <h2>Needs attention</h2>
        <Link href="/runs?status=failed&period=day">Failed runs</Link>
      </div>
      {isKnown && items.length === 0 ? (
        <p className="calm">Nothing waits for you, and nothing failed in the last day.</p>
      ) : null}
      <ErrorNotice error={approvals.error ?? runs.error ?? extractions.error ?? jobs.error} />
      <ul className="events">
        {items.slice(0, shownMax + 2).map(({ key, tone, text, detail, at }) => (
          <li key={key} className={tone}>
            <span className="cut">{text}</span>
            <span className="faint cut" title={typeof detail === 'string' ? detail : undefined}>
              {detail}
            </span>
            {at === undefined ? <span /> : <Time at={at} />}
          </li>
        ))}
      </ul>
    </section>
  );
}
