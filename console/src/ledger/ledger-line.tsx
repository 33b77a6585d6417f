import { useState } from 'react';
import { Link } from 'wouter';
import { call, type Result } from '../api/client.ts';
import { Button } from '../ui/button.tsx';
import { ErrorNotice } from '../ui/notice.tsx';
import { useAction } from '../ui/query.ts';
import { saveJson } from '../ui/save.ts';
import { Time } from '../ui/time.tsx';

type Problem = Result<'GET /api/v1/ledger/verification'>['problems'][number];
type Verified = { segment: number; at: string; problems: Problem[] };

const problemsShownMax = 20;

/** Exports the head of the ledger, and verifies the audit log and the journals that it covers. */
export function LedgerLine() {
  const [verified, setVerified] = useState<Verified>();
  const verify = useAction(async () => {
    const head = await call('GET /api/v1/ledger', {});
    const problems: Problem[] = [];
    let cursor: string | undefined;
    do {
      const part = await call('GET /api/v1/ledger/verification', { query: cursor === undefined ? {} : { cursor } });
      problems.push(...part.problems);
      cursor = part.next_cursor;
    } while (cursor !== undefined && problems.length < problemsShownMax);
    setVerified({ segment: head.segment, at: head.sealed_at, problems });
  });
  const download = useAction(async () => saveHead(await call('GET /api/v1/ledger', {})));
  return (
    <>
      <div className="toolbar">
        <p className="faint" role="status">
          {verified !== undefined && verified.problems.length === 0 ? (
            <>
              Verified up to segment {verified.segment}, sealed <Time at={verified.at} />: nothing was changed.
            </>
          ) : (
            'A signed ledger protects the audit log and the journals.'
          )}
        </p>
        <Button busy={verify.busy} onClick={() => verify.run()}>
          Verify
        </Button>
        <Button busy={download.busy} onClick={() => download.run()}>
          Download head
        </Button>
      </div>
      <ErrorNotice error={verify.error ?? download.error} />
      {verified !== undefined && verified.problems.length > 0 ? (
        <div className="notice error" role="alert">
          <p>These records differ from what was recorded:</p>
          <ul>
            {verified.problems.slice(0, problemsShownMax).map((problem) => (
              <li key={`${problem.kind}/${problem.chain}/${problem.record}/${problem.segment}`}>
                {problem.message} <Place problem={problem} />
              </li>
            ))}
          </ul>
        </div>
      ) : null}
    </>
  );
}

/** Where in the app's ledger the problem is. */
function Place({ problem: { chain, record, segment } }: { problem: Problem }) {
  const [kind, run] = chain.split(' ');
  if (kind === 'journal')
    return (
      <>
        Entry {record} of the journal of <Link href={`/runs/${run}`}>{run}</Link>
      </>
    );
  return (
    <>
      {record === undefined ? null : <code>{record}</code>}
      {record === undefined || segment === undefined ? null : ', '}
      {segment === undefined ? null : `segment ${segment}`}
    </>
  );
}

function saveHead(head: Result<'GET /api/v1/ledger'>): void {
  saveJson(`ledger-head-${head.segment}.json`, head);
}
