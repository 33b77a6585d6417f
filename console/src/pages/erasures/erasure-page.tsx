import { Link } from 'wouter';
import type { Erasure } from '../../api/generated.ts';
import { Id } from '../../ui/copy.tsx';
import { PageHead } from '../../ui/page.tsx';
import { Progress } from '../../ui/progress.tsx';
import { useApi } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import { Time } from '../../ui/time.tsx';
import { CertificateView } from './certificate.tsx';
import './erasures.css';
import { subjectOf, wordsOf } from './subject.ts';

const firstPollMs = 400;
const slowMs = 10 * 60_000;

/** One erasure: its progress while it runs, and then its certificate. */
export function ErasurePage({ id }: { id: string }) {
  const path = { erasure: id };
  const poll = ({ status }: Erasure) => (status === 'running' ? firstPollMs : undefined);
  const erasure = useApi('GET /api/v1/erasures/{erasure}', { path }, { poll });
  const isDone = erasure.data?.status === 'done';
  const certificate = useApi('GET /api/v1/erasures/{erasure}/certificate', { path }, { enabled: isDone });
  return (
    <Shown loaded={erasure}>
      {(found) => {
        const { kind, id: subject } = subjectOf(found);
        return (
          <>
            <PageHead
              title={`${kind} …${subject.slice(-8)}`}
              lead={
                <>
                  <State value={found.status} /> · ordered <Time at={found.created_at} />
                  {found.completed_at === undefined ? null : (
                    <>
                      {' '}
                      · done <Time at={found.completed_at} />
                    </>
                  )}{' '}
                  · <Id id={subject} /> · <Id id={found.id} label={`ers_…${found.id.slice(-6)}`} />
                </>
              }
            />
            {isDone ? null : <Running erasure={found} />}
            <Removed counts={found.removed} isDone={isDone} />
            {isDone ? <Shown loaded={certificate}>{(signed) => <CertificateView certificate={signed} />}</Shown> : null}
          </>
        );
      }}
    </Shown>
  );
}

function Running({ erasure }: { erasure: Erasure }) {
  const isSlow = Date.now() - Date.parse(erasure.created_at) > slowMs;
  return (
    <section className="card" aria-label="Erasure in progress">
      <Progress label="Erasure" />
      <p className="faint">
        The server deletes in the background: you can leave this page.
        {isSlow ? (
          <>
            {' '}
            It takes long. It may wait for a backup, or its job may be among the{' '}
            <Link href="/jobs">set-aside jobs</Link>.
          </>
        ) : null}
      </p>
    </section>
  );
}

function Removed({ counts, isDone }: { counts: Record<string, number>; isDone: boolean }) {
  const shown = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([a], [b]) => a.localeCompare(b));
  return (
    <section className="card" aria-live="polite">
      <h2>{isDone ? 'What was removed' : 'Removed so far'}</h2>
      {shown.length === 0 ? (
        <p className="faint">{isDone ? 'Nothing more was stored under it.' : 'Nothing yet.'}</p>
      ) : (
        <dl className="counts">
          {shown.map(([name, count]) => (
            <div key={name}>
              <dt>{wordsOf(name)}</dt>
              <dd>{count.toLocaleString('en')}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}
