import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { KnowledgeIngestion, KnowledgeSource } from '../../api/generated.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { bytes, count, duration } from '../../ui/format.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Details, Empty } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { useAction, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import './knowledge.css';

const ingestions = 'GET /api/v1/knowledge_sources/{source}/ingestions';
const ingest = 'POST /api/v1/knowledge_sources/{source}/ingest';
const firstPollMs = 400;

type Failure = { item?: number; url?: string; code: string; message: string };

export function isActive(ingestion: KnowledgeIngestion | undefined): boolean {
  return ingestion !== undefined && ['pending', 'running', 'awaiting_callback'].includes(ingestion.status);
}

const pollMs = 300;
const pollsMax = 200;

/** Waits until an ingestion has ended, for a minute at most. Throws its error if it failed. */
export async function ended(started: KnowledgeIngestion): Promise<KnowledgeIngestion> {
  let ingestion = started;
  for (let polls = 0; isActive(ingestion) && polls < pollsMax; polls++) {
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    ingestion = await call('GET /api/v1/knowledge_ingestions/{ingestion}', { path: { ingestion: ingestion.id } });
  }
  if (ingestion.status === 'failed') throw new Error(String(ingestion.error?.message ?? 'The ingestion failed.'));
  return ingestion;
}

/** What an ingestion did, in numbers. */
export function statsText(stats: Record<string, unknown>): string {
  const number = (name: string) => Number(stats[name] ?? 0);
  const parts = ['page', 'document', 'chunk'].flatMap((name) =>
    number(`${name}s`) > 0 ? [count(number(`${name}s`), name)] : [],
  );
  if (number('bytes') > 0) parts.push(bytes(number('bytes')));
  for (const name of ['unchanged', 'removed', 'failed'])
    if (number(name) > 0) parts.push(`${number(name).toLocaleString('en')} ${name}`);
  return parts.length === 0 ? 'nothing' : parts.join(' · ');
}

/** The ingestions of a source, newest first. Each opens with what it could not read. */
export function Ingestions({ source }: { source: string }) {
  const [{ page }, change] = useFilters({ page: '1' });
  const [shown, setShown] = useState<string>();
  const poll = ({ data }: { data: KnowledgeIngestion[] }) => (data.some(isActive) ? firstPollMs : undefined);
  const loaded = useApi(ingestions, { path: { source }, query: { page: pageNumber(page) } }, { poll, keep: true });
  const columns: Column<KnowledgeIngestion>[] = [
    {
      id: 'id',
      name: 'Ingestion',
      look: 'main',
      cell: ({ id }) => (
        <button type="button" className="as-link" onClick={() => setShown(id)}>
          <code>…{id.slice(-8)}</code>
        </button>
      ),
    },
    { id: 'status', name: 'Status', sort: ({ status }) => status, cell: ({ status }) => <State value={status} /> },
    { id: 'result', name: 'Result', cell: (one) => <Result of={resultOf(one)} /> },
    { id: 'started', name: 'Started', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
  ];
  const found = loaded.data?.data.find(({ id }) => id === shown);
  return (
    <>
      <PagedTable
        label="Ingestions"
        loaded={loaded}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={
          <Empty title="Nothing has been ingested yet">Each push and each pull is listed here with its result.</Empty>
        }
      />
      {found ? <OneIngestion ingestion={found} onClose={() => setShown(undefined)} /> : null}
    </>
  );
}

function Result({ of }: { of: string }) {
  return (
    <span className="faint cut" title={of}>
      {of}
    </span>
  );
}

function resultOf({ error, stats, metadata }: KnowledgeIngestion): string {
  if (error) return String(error.message ?? error.code);
  const held = Number(metadata.deletions_held ?? 0);
  return held > 0 ? `${statsText(stats)} · ${count(held, 'deletion')} held` : statsText(stats);
}

function OneIngestion({ ingestion, onClose }: { ingestion: KnowledgeIngestion; onClose: () => void }) {
  const { id, status, error, stats, metadata, started_at, completed_at, created_at } = ingestion;
  const failures = (Array.isArray(stats.errors) ? stats.errors : []) as Failure[];
  const failed = Number(stats.failed ?? 0);
  const took = started_at && completed_at ? duration(Date.parse(completed_at) - Date.parse(started_at)) : undefined;
  return (
    <Dialog title="Ingestion" wide onClose={onClose}>
      <div className="stack">
        <Details
          rows={[
            ['Status', <State key="status" value={status} />],
            ['Id', <code key="id">{id}</code>],
            ['Started', <Time key="started" at={started_at ?? created_at} />],
            ['Took', took],
            ['Result', statsText(stats)],
            ['Commit', typeof metadata.commit === 'string' ? <code key="commit">{metadata.commit}</code> : undefined],
          ]}
        />
        {error ? (
          <div className="notice error">
            <p>
              <strong>It failed:</strong> {String(error.message ?? '')} <code>{String(error.code ?? '')}</code>
            </p>
          </div>
        ) : null}
        {metadata.deletions_held === undefined ? null : (
          <p className="notice warning">
            The listing lacked {count(Number(metadata.deletions_held), 'document')}. Nothing was deleted: a person
            decides.
          </p>
        )}
        {metadata.feed_cut === true ? (
          <p className="notice">The feed is longer than what a pull reads. Only its first entries were read.</p>
        ) : null}
        {failures.length === 0 ? null : (
          <div>
            <h3>What could not be read</h3>
            <ul className="unread">
              {failures.map((one) => (
                <li key={`${one.url ?? one.item} ${one.code}`}>
                  <strong>{one.url ?? `Document ${(one.item ?? 0) + 1}`}</strong>
                  <span>
                    {one.message} <code>{one.code}</code>
                  </span>
                </li>
              ))}
            </ul>
            {failed > failures.length ? (
              <p className="hint">And {(failed - failures.length).toLocaleString('en')} more.</p>
            ) : null}
          </div>
        )}
        <div className="form-actions">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  );
}

/** Deletions that wait for a person, because the listing was empty or lacked most of the source. */
export function HeldDeletions({
  source: { id, held_deletions: held },
  onPull,
}: {
  source: KnowledgeSource;
  onPull: () => void;
}) {
  const path = { source: id };
  const readAgain = useAction(async () => {
    await call(ingest, { path, body: { pull: true } });
    onPull();
  });
  if (held === null) return null;
  const documents = count(held.documents, 'document');
  return (
    <div className="notice warning" role="status">
      <p>
        <strong>
          {documents} would be deleted, of {held.of.toLocaleString('en')}.
        </strong>{' '}
        The last listing, read <Time at={held.since} />, did not contain {held.documents === 1 ? 'it' : 'them'}. Nothing
        was deleted, and later pulls delete nothing until you decide.
      </p>
      <p>If the listing is wrong, repair it or correct the settings, then read the source again.</p>
      <div className="toolbar">
        <DeleteButton
          title={`Delete ${documents}?`}
          action={`Delete ${documents}`}
          label={`Delete ${documents}…`}
          perform={async () => {
            const body = { pull: true, confirm_deletions: true, on_active: 'queue' as const };
            await call(ingest, { path, body });
            onPull();
          }}
        >
          The source is read again, and whatever the listing does not contain then is deleted. This cannot be undone.
        </DeleteButton>
        <Button busy={readAgain.busy} onClick={() => readAgain.run()}>
          Keep them and read again
        </Button>
      </div>
      <ErrorNotice error={readAgain.error} />
    </div>
  );
}
