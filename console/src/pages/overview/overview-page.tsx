import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { AutomationRunSummary } from '../../api/generated.ts';
import { useSession } from '../../session.tsx';
import { type Bar, Bars, lastDays } from '../../ui/bars.tsx';
import { bytes, compact, count, duration } from '../../ui/format.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { PageHead } from '../../ui/page.tsx';
import { type Loaded, useApi } from '../../ui/query.ts';
import { State } from '../../ui/state.tsx';
import { Time } from '../../ui/time.tsx';
import { actionWords } from '../../ui/words.ts';
import { money } from '../models/money.ts';
import { shownStatus } from '../runs/run-state.ts';
import { Attention } from './attention.tsx';
import { Checklist } from './checklist.tsx';
import './overview.css';
import { useTotals } from './totals.ts';

const daysShown = 30;
const runsShown = 60;

/** How the app is doing: its traffic, what needs a person, and what happened last. */
export function OverviewPage() {
  const { place, apps } = useSession();
  const name = apps.find(({ id }) => id === place.app)?.name ?? 'The app';
  return (
    <>
      <PageHead
        title={name}
        lead={place.sandbox === undefined ? 'Production' : 'A sandbox: production never sees what is here.'}
      />
      <Checklist />
      <Measures />
      <div className="panes">
        <Attention />
        <Activity />
      </div>
      <Counts />
    </>
  );
}

/** Requests, runs, language models and storage, each with what it was over time. */
function Measures() {
  const loaded = {
    uses: useApi('GET /api/v1/credential_uses', { query: { page_size: 100 } }),
    runs: useApi('GET /api/v1/automation_runs', { query: { limit: runsShown } }, { poll: () => 4_000 }),
    models: useApi('GET /api/v1/usage/models', { query: { by: 'day', page_size: 100 } }),
    usage: useApi('GET /api/v1/usage'),
  };
  const uses = loaded.uses.data?.data;
  const runs = loaded.runs.data?.data;
  const models = loaded.models.data?.data;
  const usage = loaded.usage.data;
  const failed = Object.values(loaded).find(({ data, error }) => data === undefined && error !== undefined);
  const requests = sumBy(uses, ({ requests }) => requests);
  const refused = uses?.reduce((sum, one) => sum + one.refused, 0) ?? 0;
  const tokensByDay = new Map(
    models?.map(({ group, prompt_tokens, completion_tokens }) => [group ?? '', prompt_tokens + completion_tokens]),
  );
  const cost = models?.reduce((sum, one) => sum + one.cost, 0) ?? 0;
  const ended = runs?.filter(({ status }) => status === 'completed' || status === 'failed') ?? [];
  const failures = ended.filter(({ status }) => status === 'failed').length;
  const stored = usage?.file_bytes;
  if (failed) return <ErrorNotice error={failed.error} onRetry={() => retry(Object.values(loaded))} />;
  return (
    <ul className="measures" aria-label="The last 30 days">
      <Measure
        name="Requests"
        href="/usage"
        figure={uses && compact([...requests.values()].reduce((sum, one) => sum + one, 0))}
        detail={`${compact(refused)} refused`}
      >
        <Bars label="Requests by day" bars={lastDays(daysShown, requests, (value) => count(value, 'request'))} />
      </Measure>
      <Measure
        name={ended.length === 0 ? 'Last runs' : ended.length === 1 ? 'Last run' : `Last ${count(ended.length, 'run')}`}
        href="/runs"
        figure={runs && (ended.length === 0 ? '0' : `${Math.round((1 - failures / ended.length) * 100)} % succeeded`)}
        detail={ended.length === 0 ? 'None has ended yet' : `${duration(middleOf(ended))} median`}
      >
        <Bars label="Duration of the last runs" bars={(runs ?? []).map(runBar).reverse()} />
      </Measure>
      <Measure
        name="Tokens of language models"
        href="/models?tab=usage"
        figure={models && compact([...tokensByDay.values()].reduce((sum, one) => sum + one, 0))}
        detail={`Cost ${money(cost)}`}
      >
        <Bars label="Tokens by day" bars={lastDays(daysShown, tokensByDay, (value) => count(value, 'token'))} />
      </Measure>
      <Measure
        name="Storage"
        href="/usage"
        figure={stored && bytes(stored.used)}
        detail={stored?.limit == null ? 'No quota' : `of ${bytes(stored.limit)}`}
      >
        {usage === undefined ? null : (
          <dl className="measure-rows">
            <div>
              <dt>Documents</dt>
              <dd>{usage.documents.used.toLocaleString('en')}</dd>
            </div>
            <div>
              <dt>Pages today</dt>
              <dd>{usage.pages.used.toLocaleString('en')}</dd>
            </div>
          </dl>
        )}
      </Measure>
    </ul>
  );
}

function retry(loaded: Pick<Loaded<unknown>, 'error' | 'reload'>[]): void {
  for (const { error, reload } of loaded) if (error !== undefined) reload();
}

function Measure({
  name,
  href,
  figure,
  detail,
  children,
}: {
  name: string;
  href: string;
  figure: string | undefined;
  detail: string;
  children: ReactNode;
}) {
  return (
    <li>
      <Link href={href}>{name}</Link>
      <p className="figure">{figure ?? <span className="waiting-figure" />}</p>
      <p className="faint">{figure === undefined ? ' ' : detail}</p>
      <div className="measure-chart">{figure === undefined ? null : children}</div>
    </li>
  );
}

function sumBy<T extends { day: string }>(rows: T[] | undefined, numberOf: (row: T) => number): Map<string, number> {
  const sums = new Map<string, number>();
  for (const row of rows ?? []) sums.set(row.day, (sums.get(row.day) ?? 0) + numberOf(row));
  return sums;
}

const lengthOf = ({ started_at, completed_at }: AutomationRunSummary) =>
  started_at === undefined || completed_at === undefined ? 0 : Date.parse(completed_at) - Date.parse(started_at);

function middleOf(runs: AutomationRunSummary[]): number {
  const lengths = runs.map(lengthOf).sort((a, b) => a - b);
  return lengths[Math.floor(lengths.length / 2)] ?? 0;
}

const tones: Record<string, Bar['tone']> = { completed: 'good', failed: 'bad', waiting: 'warn', cancelled: 'quiet' };

/** Long runs do not make short ones invisible: the height grows with the logarithm of the duration. */
function runBar(run: AutomationRunSummary): Bar {
  const status = shownStatus(run);
  const ms = lengthOf(run);
  const words = `${run.automation_name}: ${status}${ms === 0 ? '' : ` in ${duration(ms)}`}`;
  return { key: run.id, value: Math.log10(10 + ms), label: words, tone: tones[status] };
}

function Counts() {
  const totals = useTotals();
  const links: [name: string, path: string, number: number | undefined][] = [
    ['Files', '/files', totals.files],
    ['Sources', '/knowledge', totals.sources],
    ['Documents', '/knowledge', totals.documents],
    ['Automations', '/automations', totals.automations],
    ['Users', '/users', totals.users],
    ['Agents', '/agents', totals.agents],
  ];
  return (
    <ul className="counts">
      {links.map(([name, path, number]) => (
        <li key={name}>
          <Link href={path}>
            <span className="faint">{name}</span>
            <span className="number">{number?.toLocaleString('en') ?? '–'}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

function Activity() {
  const runs = useApi('GET /api/v1/automation_runs', { query: { limit: 5 } }, { poll: () => 4_000 });
  const changes = useApi('GET /api/v1/audit', { query: { page_size: 5 } });
  return (
    <section className="card" aria-label="Recent activity">
      <div className="toolbar">
        <h2>Recent activity</h2>
        <Link href="/audit">Audit log</Link>
      </div>
      <ErrorNotice error={runs.error ?? changes.error} />
      <ul className="events">
        {runs.data?.data.map((run) => (
          <li key={run.id}>
            <Link className="cut" href={`/runs/${run.id}`}>
              {run.automation_name}
            </Link>
            <State value={shownStatus(run)} /> <Time at={run.created_at} />
          </li>
        ))}
        {changes.data?.data.map((entry) => (
          <li key={entry.id}>
            <span className="cut" title={entry.action}>
              {actionWords(entry.action)}
            </span>
            <span className="faint">{entry.actor.kind.replaceAll('_', ' ')}</span> <Time at={entry.at} />
          </li>
        ))}
      </ul>
    </section>
  );
}
