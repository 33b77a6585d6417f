import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useSession } from '../../session.tsx';
import { count } from '../../ui/format.ts';
import { Check, Circle } from '../../ui/icons.ts';
import { PageHead } from '../../ui/page.tsx';
import { useApi } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { firstSteps, Snippets } from '../../ui/snippets.tsx';
import { State } from '../../ui/state.tsx';
import { Time } from '../../ui/time.tsx';
import { Quotas } from '../app/usage-page.tsx';
import { shownStatus } from '../runs/run-state.ts';
import './overview.css';

const one = { page_size: 1 };
const dayMs = 24 * 3_600_000;

/** The app's resources, failures, usage and latest changes. */
export function OverviewPage() {
  const { place, apps } = useSession();
  const name = apps.find(({ id }) => id === place.app)?.name ?? 'The app';
  const usage = useApi('GET /api/v1/usage');
  return (
    <>
      <PageHead
        title={name}
        lead={place.sandbox === undefined ? 'Production' : 'A sandbox: production never sees what is here.'}
      />
      <Checklist />
      <Counts />
      <div className="panes">
        <Failures />
        <Activity />
      </div>
      <h2>Usage</h2>
      <Shown loaded={usage}>{(found) => <Quotas usage={found} />}</Shown>
    </>
  );
}

function useTotals() {
  const totals = {
    files: useApi('GET /api/v1/files', { query: one }).data?.total_entries,
    sources: useApi('GET /api/v1/knowledge_sources', { query: one }).data?.total_entries,
    documents: useApi('GET /api/v1/knowledge_documents', { query: one }).data?.total_entries,
    automations: useApi('GET /api/v1/automations', { query: one }).data?.total_entries,
    users: useApi('GET /api/v1/users', { query: one }).data?.total_entries,
    agents: useApi('GET /api/v1/agents', { query: one }).data?.total_entries,
    keys: useApi('GET /api/v1/keys', { query: one }).data?.total_entries,
    runs: useApi('GET /api/v1/automation_runs', { query: { limit: 1 } }).data?.data.length,
  };
  return totals;
}

function Counts() {
  const totals = useTotals();
  const cards: [name: string, path: string, number: number | undefined][] = [
    ['Files', '/files', totals.files],
    ['Sources', '/knowledge', totals.sources],
    ['Documents', '/knowledge', totals.documents],
    ['Automations', '/automations', totals.automations],
    ['Users', '/users', totals.users],
    ['Agents', '/agents', totals.agents],
  ];
  return (
    <ul className="counts">
      {cards.map(([name, path, number]) => (
        <li key={name}>
          <Link href={path} className="card">
            <span className="figure">{number?.toLocaleString('en') ?? '…'}</span>
            <span className="faint">{name}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

/** The first steps in a new app, with requests to copy. Disappears when all are done. */
function Checklist() {
  const totals = useTotals();
  const steps: [done: boolean, text: ReactNode][] = [
    [
      (totals.keys ?? 0) > 0,
      <Link key="key" href="/keys">
        Create a secret key for your server
      </Link>,
    ],
    [
      (totals.users ?? 0) > 0,
      <Link key="user" href="/users">
        Create the first user
      </Link>,
    ],
    [
      (totals.files ?? 0) > 0,
      <Link key="file" href="/files">
        Upload a file
      </Link>,
    ],
    [
      (totals.documents ?? 0) > 0,
      <Link key="source" href="/knowledge">
        Make a document searchable
      </Link>,
    ],
    [
      (totals.runs ?? 0) > 0,
      <Link key="run" href="/automations">
        Run an automation
      </Link>,
    ],
  ];
  if (Object.values(totals).includes(undefined) || steps.every(([done]) => done)) return null;
  return (
    <section className="card" aria-label="First steps">
      <h2>First steps</h2>
      <ol className="checklist">
        {steps.map(([done, text], index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the steps do not move
          <li key={index} className={done ? 'done' : ''}>
            {done ? <Check size={16} aria-hidden="true" /> : <Circle size={16} aria-hidden="true" />}
            {text}
            <span className="hidden">{done ? ', done' : ', to do'}</span>
          </li>
        ))}
      </ol>
      <Snippets label="Upload a file" snippets={firstSteps()} />
    </section>
  );
}

function Failures() {
  const since = new Date(Math.floor(Date.now() / 60_000) * 60_000 - dayMs).toISOString();
  const runs = useApi('GET /api/v1/automation_runs', { query: { status: 'failed', since, limit: 5 } });
  const extractions = useApi('GET /api/v1/extractions', { query: { state: 'failed', page_size: 5 } });
  const jobs = useApi('GET /api/v1/jobs', { query: one });
  const recent = extractions.data?.data.filter((found) => Date.parse(found.created_at) > Date.now() - dayMs) ?? [];
  const setAside = jobs.data?.total_entries ?? 0;
  const failed = runs.data?.data ?? [];
  return (
    <section className="card" aria-label="Failures of the last day">
      <h2>Failures of the last day</h2>
      {setAside > 0 ? (
        <p>
          <Link href="/jobs">{count(setAside, 'job')} set aside</Link>
        </p>
      ) : null}
      {failed.length + recent.length + setAside === 0 ? <p className="faint">None.</p> : null}
      <ul className="events">
        {failed.map((run) => (
          <li key={run.id}>
            <Link href={`/runs/${run.id}`}>{run.automation_name}</Link>
            <span className="faint cut">{run.error?.message}</span> <Time at={run.completed_at ?? run.created_at} />
          </li>
        ))}
        {recent.map((found) => (
          <li key={found.id}>
            <Link href={`/extractions/${found.id}`}>Extraction</Link>
            <span className="faint cut">{found.error?.message ?? found.url}</span> <Time at={found.created_at} />
          </li>
        ))}
      </ul>
      {failed.length > 0 ? <Link href="/runs?status=failed&period=day">All failed runs</Link> : null}
    </section>
  );
}

function Activity() {
  const runs = useApi('GET /api/v1/automation_runs', { query: { limit: 5 } }, { poll: () => 4_000 });
  const changes = useApi('GET /api/v1/audit', { query: { page_size: 5 } });
  return (
    <section className="card" aria-label="Recent activity">
      <h2>Recent activity</h2>
      <ul className="events">
        {runs.data?.data.map((run) => (
          <li key={run.id}>
            <Link href={`/runs/${run.id}`}>{run.automation_name}</Link>
            <State value={shownStatus(run)} /> <Time at={run.created_at} />
          </li>
        ))}
        {changes.data?.data.map((entry) => (
          <li key={entry.id}>
            <span>{entry.action}</span>
            <span className="faint">{entry.actor.kind.replaceAll('_', ' ')}</span> <Time at={entry.at} />
          </li>
        ))}
      </ul>
      <Link href="/audit">The audit log</Link>
    </section>
  );
}
