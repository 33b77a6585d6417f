import { useEffect } from 'react';
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
import './approvals.css';

const pollMs = 3_000;
const states = ['waiting', 'answered', 'expired', 'cancelled'] as const;

/** The questions of runs that wait for the signed-in person, with their forms. */
export function ApprovalsPage() {
  const { isDeveloper } = useSession();
  const [filters, change] = useFilters({ status: 'waiting', page: '', approval: '' });
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
          onChange={(event) => change({ status: event.target.value, page: '', approval: '' })}
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
              <Inbox
                approvals={data}
                chosen={filters.approval}
                onChoose={(approval) => change({ approval, page: filters.page })}
                onAnswered={approvals.reload}
              />
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

/** One question after the other, with one open. It stays open when others arrive above it, with what was typed. */
function Inbox({
  approvals,
  chosen,
  onChoose,
  onAnswered,
}: {
  approvals: Approval[];
  chosen: string;
  onChoose: (approval: string) => void;
  onAnswered: () => void;
}) {
  const open = approvals.find(({ id }) => id === chosen) ?? approvals[0];
  useEffect(() => {
    if (open !== undefined && open.id !== chosen) onChoose(open.id);
  }, [open, chosen, onChoose]);
  return (
    <ul className="inbox">
      {approvals.map((approval) => {
        const isOpen = approval.id === open?.id;
        return (
          <li key={approval.id}>
            <button type="button" className="inbox-row" aria-expanded={isOpen} onClick={() => onChoose(approval.id)}>
              <span className="cut">{approval.question}</span>
              <State value={approval.status} />
              <span className="faint">
                <Time at={approval.closed_at ?? approval.created_at} />
              </span>
            </button>
            {isOpen ? <Question approval={approval} onAnswered={onAnswered} /> : null}
          </li>
        );
      })}
    </ul>
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
    <section className="inbox-open" aria-label={question}>
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
