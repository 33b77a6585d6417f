import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { call, connection } from '../../api/client.ts';
import type { AutomationRunSummary } from '../../api/generated.ts';
import { useSession } from '../../session.tsx';
import { useFilters } from '../../ui/address.ts';
import { forEachOf } from '../../ui/bulk.ts';
import { BulkButton } from '../../ui/bulk-button.tsx';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { Live } from '../../ui/live.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { asApiError, refresh, useApi } from '../../ui/query.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { Skeleton } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import { type Column, DataTable } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { took } from './run-page.tsx';
import { isOver, shownStatus } from './run-state.ts';

const pollMs = 2_000;
const pageSize = 100;
const livePagesMax = 2;
const statuses = ['pending', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const;
const periods: Record<string, [name: string, hours: number]> = {
  hour: ['Last hour', 1],
  day: ['Last day', 24],
  week: ['Last week', 168],
};

/** The runs of all automations, or of one with `automation`. */
export function RunsPage() {
  const { isDeveloper } = useSession();
  return (
    <>
      <PageHead title="Runs" lead="Every run of your automations, newest first." />
      <RunList
        empty={
          isDeveloper
            ? 'Runs appear here when an automation is invoked, scheduled or triggered.'
            : 'Your runs appear here.'
        }
      />
    </>
  );
}

/** @param automation only the runs of this one */
export function RunList({ automation, empty }: { automation?: string; empty: string }) {
  const { isDeveloper } = useSession();
  const [filters, change] = useFilters({ status: '', period: '', automation: '', q: '' });
  const of = automation ?? filters.automation;
  const key = [of, filters.status, filters.period, filters.q];
  const runs = useInfiniteQuery({
    queryKey: ['GET /api/v1/automation_runs', connection.app, connection.sandbox, ...key],
    queryFn: ({ pageParam }) => call('GET /api/v1/automation_runs', { query: queryOf(of, filters, pageParam) }),
    initialPageParam: '',
    getNextPageParam: (page) => (page.has_more ? page.after_cursor : undefined),
    // Every refetch reads all loaded pages.
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) <= livePagesMax ? pollMs : false),
    placeholderData: (last) => last,
  });
  const rows = runs.data?.pages.flatMap((page) => page.data) ?? [];
  const filtered = filters.status !== '' || filters.q !== '' || filters.period !== '' || filters.automation !== '';
  return (
    <>
      <div className="toolbar">
        {automation === undefined ? (
          <SearchField label="Search runs by automation or id" value={filters.q} onChange={(q) => change({ q })} />
        ) : null}
        <select
          aria-label="Filter by state"
          value={filters.status}
          onChange={(event) => change({ status: event.target.value })}
        >
          <option value="">All states</option>
          {statuses.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <select
          aria-label="Filter by time"
          value={filters.period}
          onChange={(event) => change({ period: event.target.value })}
        >
          <option value="">Any time</option>
          {Object.entries(periods).map(([value, [name]]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
        {isDeveloper && automation === undefined ? (
          <AutomationFilter value={filters.automation} onChange={(next) => change({ automation: next })} />
        ) : null}
        <Live error={runs.error} />
      </div>
      <ErrorNotice error={runs.error ? asApiError(runs.error) : undefined} onRetry={() => void runs.refetch()} />
      {runs.isPending ? <Skeleton /> : null}
      {runs.data && rows.length === 0 ? (
        <Empty
          title={filtered ? 'No matching runs' : 'No runs here'}
          action={
            filtered ? (
              <Button onClick={() => change({ status: '', q: '', period: '', automation: '' })}>Show all</Button>
            ) : isDeveloper && automation === undefined ? (
              <Link className="button plain" href="/automations">
                Go to the automations
              </Link>
            ) : undefined
          }
        >
          {filtered ? 'No run has this state, time and name.' : empty}
        </Empty>
      ) : null}
      {rows.length > 0 ? (
        <DataTable
          label="Runs"
          columns={columnsOf(automation === undefined)}
          rows={rows}
          rowId={(run) => run.id}
          selection={isDeveloper ? { nameOf: (run) => run.id, actions: bulkActions } : undefined}
        />
      ) : null}
      {runs.hasNextPage ? (
        <LoadMore busy={runs.isFetchingNextPage} count={rows.length} onMore={() => void runs.fetchNextPage()} />
      ) : null}
    </>
  );
}

function queryOf(automation: string, { status, period, q }: Record<string, string>, after: string) {
  const hours = periods[period ?? '']?.[1];
  return {
    limit: pageSize,
    ...(after === '' ? {} : { after_cursor: after }),
    ...(automation === '' ? {} : { automation }),
    ...(status === '' ? {} : { status: status as (typeof statuses)[number] }),
    ...(hours === undefined ? {} : { since: new Date(Date.now() - hours * 3_600_000).toISOString() }),
    ...(q?.trim() ? { search: q.trim() } : {}),
  };
}

function columnsOf(withAutomation: boolean): Column<AutomationRunSummary>[] {
  const name: Column<AutomationRunSummary> = {
    id: 'automation',
    name: 'Automation',
    look: 'main',
    sort: (run) => run.automation_name,
    cell: (run) => <Link href={`/runs/${run.id}`}>{run.automation_name}</Link>,
  };
  return [
    ...(withAutomation ? [name] : []),
    {
      id: 'run',
      name: 'Run',
      ...(withAutomation ? {} : { look: 'main' as const }),
      cell: (run) =>
        withAutomation ? (
          <Id id={run.id} label={`…${run.id.slice(-8)}`} />
        ) : (
          <Link href={`/runs/${run.id}`}>
            <code className="cut">{run.id}</code>
          </Link>
        ),
    },
    {
      id: 'status',
      name: 'Status',
      sort: shownStatus,
      cell: (run) => (
        <span title={run.error?.message}>
          <State value={shownStatus(run)} />
        </span>
      ),
    },
    { id: 'started', name: 'Started', sort: (run) => run.created_at, cell: (run) => <Time at={run.created_at} /> },
    { id: 'took', name: 'Took', look: 'number', cell: took },
  ];
}

function bulkActions(rows: AutomationRunSummary[], clear: () => void) {
  const over = rows.filter(isOver);
  const active = rows.filter((run) => !isOver(run));
  const perform = async (runs: AutomationRunSummary[], done: string, verb: 'retry' | 'cancel') => {
    await forEachOf(runs, done, ({ id }) => {
      const path = { automation_run: id };
      return verb === 'retry'
        ? call('POST /api/v1/automation_runs/{automation_run}/retry', { path })
        : call('POST /api/v1/automation_runs/{automation_run}/cancel', { path });
    });
    refresh('GET /api/v1/automation_runs');
    clear();
  };
  return (
    <>
      <BulkButton
        label={`Run ${over.length} again`}
        disabled={over.length === 0}
        onRun={() => perform(over, 'started again', 'retry')}
      />
      <BulkButton
        label={`Cancel ${active.length}`}
        disabled={active.length === 0}
        danger
        question="Completed steps are not undone. No further step starts."
        onRun={() => perform(active, 'cancelled', 'cancel')}
      />
    </>
  );
}

function AutomationFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const automations = useApi('GET /api/v1/automations', { query: { page_size: 100 } });
  return (
    <select aria-label="Filter by automation" value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">All automations</option>
      {automations.data?.data.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}

function LoadMore({ busy, count, onMore }: { busy: boolean; count: number; onMore: () => void }) {
  return (
    <div className="pager">
      <Button busy={busy} onClick={onMore}>
        Load older runs
      </Button>
      <span className="faint">{count.toLocaleString('en')} loaded</span>
    </div>
  );
}
