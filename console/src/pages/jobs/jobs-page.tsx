import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { SetAsideJob } from '../../api/generated.ts';
import { Button, Empty, ErrorNotice, PageHead, Pager, Shown, Table, Time } from '../../ui/basics.tsx';
import { useAction, useLoad } from '../../ui/use-load.ts';

/** Background jobs that are not tried any more, for those who run the app. */
export function JobsPage() {
  const [page, setPage] = useState(1);
  const jobs = useLoad(String(page), () => call('GET /api/v1/jobs', { query: { page } }));
  const retry = useAction(async (job: SetAsideJob) => {
    await call('POST /api/v1/jobs/{job}/retry', { path: { job: job.id } });
    jobs.reload();
  });
  return (
    <>
      <PageHead
        title="Set-aside jobs"
        lead="Background work that failed too often, or three times ended its process. What it is about waits until you retry it."
      />
      <ErrorNotice error={retry.error} />
      <Shown loaded={jobs}>
        {(list) =>
          list.data.length === 0 ? (
            <Empty title="No job is set aside">
              A job that cannot be done stands here with the reason, and with what waits for it, until somebody retries
              it.
            </Empty>
          ) : (
            <>
              <Table columns={['Job', 'About', 'Reason', 'Set aside', { name: 'Actions', look: 'hidden' }]}>
                {list.data.map((job) => (
                  <tr key={job.id}>
                    <td className="main">{wordsOf(job.task)}</td>
                    <td>
                      <About id={job.about} />
                    </td>
                    <td>{job.reason.split('\n', 1)[0]}</td>
                    <td className="wide-only">
                      <Time at={job.set_aside_at} />
                    </td>
                    <td className="row-actions">
                      <Button
                        kind="quiet"
                        aria-label={`Retry ${wordsOf(job.task)} ${job.about ?? ''}`.trim()}
                        disabled={retry.busy}
                        onClick={() => retry.run(job)}
                      >
                        Retry
                      </Button>
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager page={list} onPage={setPage} />
            </>
          )
        }
      </Shown>
    </>
  );
}

/** Tasks are named by a verb and what it is done to. */
function wordsOf(task: string): string {
  return task.replaceAll('_', ' ');
}

const pagesByPrefix: Record<string, string> = { atr: '/runs', ext: '/extractions', cso: '/knowledge' };

/** The id of what waits for the job, and the way to its page where it has one. */
function About({ id }: { id: string | undefined }) {
  if (id === undefined) return <span className="faint">all documents without vectors</span>;
  const path = pagesByPrefix[id.slice(0, 3)];
  const code = <code>{id}</code>;
  return path === undefined ? code : <Link href={`${path}/${id}`}>{code}</Link>;
}
