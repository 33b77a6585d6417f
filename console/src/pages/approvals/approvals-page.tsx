import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { Approval } from '../../api/generated.ts';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { useSession } from '../../session.tsx';
import { useFilters } from '../../ui/address.ts';
import { Json } from '../../ui/code.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { useApi } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import { Time } from '../../ui/time.tsx';
import { toast } from '../../ui/toast.tsx';
import { AnswerForm } from './answer-form.tsx';

const pollMs = 3_000;
const states = ['waiting', 'answered', 'expired', 'cancelled'] as const;

/** The questions of runs that wait for the signed-in person, with their forms. */
export function ApprovalsPage() {
  const { isDeveloper } = useSession();
  const [filters, change] = useFilters({ status: 'waiting', page: '' });
  const status = states.find((one) => one === filters.status) ?? 'waiting';
  const query = { status, page: Number(filters.page) || 1 };
  const approvals = useApi('GET /api/v1/approvals', { query }, { poll: () => pollMs, keep: true });
  return (
    <>
      <PageHead
        title="Approvals"
        lead={
          isDeveloper ? 'What the runs of this app ask people.' : 'What runs ask you. Your answer lets them continue.'
        }
      />
      <div className="toolbar">
        <select
          aria-label="Filter by state"
          value={status}
          onChange={(event) => change({ status: event.target.value, page: '' })}
        >
          {states.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </div>
      <Shown loaded={approvals}>
        {({ data, total_pages }) =>
          data.length === 0 ? (
            <Empty title={status === 'waiting' ? 'Nothing waits for an answer' : 'None'}>
              {isDeveloper
                ? 'Approvals appear here while an approve node waits.'
                : 'When a run asks you, its question appears here.'}
            </Empty>
          ) : (
            <div className="stack">
              {data.map((approval) => (
                <Question key={approval.id} approval={approval} onAnswered={approvals.reload} />
              ))}
              {total_pages > 1 ? (
                <Pager page={query.page} pages={total_pages} onChange={(page) => change({ page })} />
              ) : null}
            </div>
          )
        }
      </Shown>
    </>
  );
}

function Pager({ page, pages, onChange }: { page: number; pages: number; onChange: (page: string) => void }) {
  return (
    <nav className="toolbar" aria-label="Pages">
      <button type="button" className="button" disabled={page <= 1} onClick={() => onChange(String(page - 1))}>
        Newer
      </button>
      <span className="faint">
        Page {page} of {pages}
      </span>
      <button type="button" className="button" disabled={page >= pages} onClick={() => onChange(String(page + 1))}>
        Older
      </button>
    </nav>
  );
}

function Question({ approval, onAnswered }: { approval: Approval; onAnswered: () => void }) {
  const { id, question, status, form, run, expires_at, created_at, closed_at, answered_by, answer } = approval;
  const send = async (data: unknown) => {
    await call('POST /api/v1/approvals/{approval}/answer', { path: { approval: id }, body: { data } });
    toast('The answer was recorded.');
    onAnswered();
  };
  return (
    <section className="card" aria-label={question}>
      <div className="toolbar">
        <h2>{question}</h2>
        <State value={status} />
      </div>
      <p className="faint">
        Asked <Time at={created_at} />
        {expires_at !== undefined && status === 'waiting' ? (
          <>
            {' '}
            · expires <Time at={expires_at} />
          </>
        ) : null}
        {closed_at === undefined ? null : (
          <>
            {' '}
            · {status} <Time at={closed_at} />
          </>
        )}
        {answered_by === undefined ? null : (
          <> by {answered_by.startsWith('usr_') ? <PrincipalName id={answered_by} /> : answered_by}</>
        )}
        {run === undefined ? null : (
          <>
            {' '}
            · <Link href={`/runs/${run}`}>its run</Link>
          </>
        )}
      </p>
      {answer === undefined ? null : <Json value={answer} label={`Answer to ${question}`} />}
      {status === 'waiting' ? <AnswerForm form={form} send={send} /> : null}
    </section>
  );
}
