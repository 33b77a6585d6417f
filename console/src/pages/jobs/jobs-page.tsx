import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { SetAsideJob } from '../../api/generated.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { forEachOf } from '../../ui/bulk.ts';
import { BulkButton } from '../../ui/bulk-button.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useAction, useApi } from '../../ui/query.ts';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

const retryJob = ({ id }: SetAsideJob) => call('POST /api/v1/jobs/{job}/retry', { path: { job: id } });

/** Background jobs that are no longer retried, for those who run the app. */
export function JobsPage() {
  const [{ page }, change] = useFilters({ page: '1' });
  const jobs = useApi('GET /api/v1/jobs', { query: { page: pageNumber(page) } }, { keep: true });
  const retry = useAction(retryJob, { say: 'The job is tried again.', refresh: ['GET /api/v1/jobs'] });
  const columns: Column<SetAsideJob>[] = [
    { id: 'job', name: 'Job', look: 'main', sort: ({ task }) => task, cell: ({ task }) => wordsOf(task) },
    { id: 'about', name: 'About', cell: ({ about }) => <About id={about} /> },
    { id: 'reason', name: 'Reason', cell: ({ reason }) => <span title={reason}>{reason.split('\n', 1)[0]}</span> },
    {
      id: 'at',
      name: 'Set aside',
      look: 'wide',
      sort: (one) => one.set_aside_at,
      cell: (one) => <Time at={one.set_aside_at} />,
    },
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: (job) => (
        <Button
          kind="quiet"
          aria-label={`Retry ${wordsOf(job.task)} ${job.about ?? ''}`.trim()}
          disabled={retry.busy}
          onClick={() => retry.run(job)}
        >
          Retry
        </Button>
      ),
    },
  ];
  return (
    <>
      <PageHead
        title="Set-aside jobs"
        lead="Background jobs that failed too often, or crashed even in a separate process. Each waits until you retry it."
      />
      <ErrorNotice error={retry.error} />
      <PagedTable
        label="Set-aside jobs"
        loaded={jobs}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        selection={{
          nameOf: ({ task, about }) => `${wordsOf(task)} ${about ?? ''}`.trim(),
          actions: (rows, clear) => (
            <BulkButton
              label={`Retry ${rows.length}`}
              onRun={async () => {
                await forEachOf(rows, 'tried again', retryJob);
                refresh('GET /api/v1/jobs');
                clear();
              }}
            />
          ),
        }}
        empty={
          <Empty title="No job is set aside">
            A job that cannot complete is listed here with the reason, and with what waits for it, until it is retried.
          </Empty>
        }
      />
    </>
  );
}

/** Task names consist of a verb and its object. */
function wordsOf(task: string): string {
  return task.replaceAll('_', ' ');
}

const pagesByPrefix: Record<string, string> = { atr: '/runs', ext: '/extractions', cso: '/knowledge' };

/** The id of the resource that waits for the job, with a link to its page if it has one. */
function About({ id }: { id: string | undefined }) {
  if (id === undefined) return <span className="faint">all documents without vectors</span>;
  const path = pagesByPrefix[id.slice(0, 3)];
  const code = <code>{id}</code>;
  return path === undefined ? code : <Link href={`${path}/${id}`}>{code}</Link>;
}
