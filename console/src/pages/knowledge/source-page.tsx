import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { KnowledgeDocument, KnowledgeIngestion, KnowledgeSource } from '../../api/generated.ts';
import { Owner } from '../../principals/principal-name.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { forEachOf } from '../../ui/bulk.ts';
import { BulkButton } from '../../ui/bulk-button.tsx';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { bytes } from '../../ui/format.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { Progress } from '../../ui/progress.tsx';
import { refresh, useAction, useApi, useLoad } from '../../ui/query.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { Shown } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { AddDocument, DropDocuments } from './add-documents.tsx';
import { documentName } from './document-name.ts';
import { History } from './history.tsx';
import { HeldDeletions, Ingestions, isActive, statsText } from './ingestions.tsx';
import { SearchPlayground } from './search-playground.tsx';
import { sourceName } from './source-name.ts';
import { filledFromOutside, Settings } from './source-settings.tsx';

const firstPollMs = 400;
const ingestions = 'GET /api/v1/knowledge_sources/{source}/ingestions';
type Tab = 'documents' | 'search' | 'ingestions' | 'history' | 'settings';

/** One source: its documents, a search over them, its ingestions, and its settings. */
export function SourcePage({ id }: { id: string }) {
  const source = useApi('GET /api/v1/knowledge_sources/{source}', { path: { source: id } });
  return <Shown loaded={source}>{(found) => <SourceBody source={found} onChange={source.replace} />}</Shown>;
}

function SourceBody({ source, onChange }: { source: KnowledgeSource; onChange: (source: KnowledgeSource) => void }) {
  const [adding, setAdding] = useState(false);
  const [{ tab }, change] = useFilters({ tab: 'documents' });
  const path = { source: source.id };
  const pushed = source.type === 'knowledge/documents';
  const pulls = !filledFromOutside.includes(source.type) && source.state === 'active';
  // Polls the newest ingestion while it is active. When it ends, documents and history are loaded again.
  const newest = useLoad(
    [ingestions, 'newest', source.id],
    async () => {
      const found = await call(ingestions, { path, query: { page_size: 1 } });
      refresh('GET /api/v1/knowledge_documents', 'GET /api/v1/knowledge_sources/{source}');
      return found;
    },
    { poll: ({ data }) => (isActive(data[0]) ? firstPollMs : undefined) },
  );
  const active = newest.data?.data[0];
  const pull = useAction(
    async () => {
      await call('POST /api/v1/knowledge_sources/{source}/ingest', { path, body: { pull: true } });
      newest.reload();
    },
    { say: 'The source is being read.' },
  );
  return (
    <>
      <PageHead
        title={sourceName(source)}
        lead={
          <>
            <State value={source.state} /> · {source.type} · <Owner of={source} /> · created{' '}
            <Time at={source.created_at} /> · <Id id={source.id} />
          </>
        }
      >
        <Link href={`/answers?sources=${source.id}`} className="button plain">
          Ask a question
        </Link>
        {pushed ? (
          <Button kind="primary" onClick={() => setAdding(true)}>
            Add a document
          </Button>
        ) : (
          <Button kind="primary" busy={pull.busy} onClick={() => pull.run()}>
            Read it now
          </Button>
        )}
      </PageHead>
      <ErrorNotice error={pull.error} />
      <HeldDeletions source={source} onPull={newest.reload} />
      {active && (isActive(active) || active.status === 'failed') ? <Watched ingestion={active} /> : null}
      {source.learned_model?.status === 'over_quota' ? (
        <div className="notice">
          <p>
            <strong>The search model of this source exceeds the quota.</strong> It needs{' '}
            {bytes(source.learned_model.bytes_needed ?? 0)}, more than is left. It is stored once there is room.
          </p>
        </div>
      ) : null}
      <Tabs<Tab>
        label="Parts of the source"
        asks
        value={tab as Tab}
        onChange={(next) => change({ tab: next })}
        tabs={[
          {
            id: 'documents',
            name: 'Documents',
            panel: (
              <>
                {pushed ? <DropDocuments source={source.id} onAdded={newest.reload} /> : null}
                <Documents source={source} onAdd={pushed ? () => setAdding(true) : undefined} />
              </>
            ),
          },
          { id: 'search', name: 'Search', panel: <SearchPlayground source={source.id} /> },
          { id: 'ingestions', name: 'Ingestions', panel: <Ingestions source={source.id} /> },
          ...(source.version_retention_days === undefined
            ? []
            : [
                {
                  id: 'history' as const,
                  name: 'History',
                  panel: <History source={source} pulls={pulls} onStarted={newest.reload} />,
                },
              ]),
          { id: 'settings', name: 'Settings', panel: <Settings source={source} onChange={onChange} /> },
        ]}
      />
      {adding ? (
        <AddDocument
          source={source.id}
          onClose={() => setAdding(false)}
          onAdded={() => {
            setAdding(false);
            newest.reload();
          }}
        />
      ) : null}
    </>
  );
}

function Watched({ ingestion }: { ingestion: KnowledgeIngestion }) {
  const { stats, error, status } = ingestion;
  if (status === 'failed')
    return (
      <div className="notice error" role="alert">
        <p>
          <strong>The last ingestion failed.</strong> {String(error?.message ?? '')}
        </p>
        <p>Correct the problem under Settings or in the document, then start it again. Ingestions has the details.</p>
      </div>
    );
  return (
    <section className="card" aria-live="polite" aria-label="Ingestion in progress">
      <Progress label="Ingestion" />
      <p className="faint">
        <State value={status} /> {statsText(stats)}
      </p>
    </section>
  );
}

const documentColumns: Column<KnowledgeDocument>[] = [
  {
    id: 'title',
    name: 'Title',
    look: 'main',
    sort: (one) => one.title ?? '',
    cell: (one) => <Link href={`/knowledge/documents/${one.id}`}>{documentName(one, one.id)}</Link>,
  },
  {
    id: 'lines',
    name: 'Lines',
    look: 'number',
    sort: (one) => one.total_lines,
    cell: (one) => one.total_lines.toLocaleString('en'),
  },
  {
    id: 'chunks',
    name: 'Chunks',
    look: 'number',
    sort: (one) => one.total_chunks,
    cell: (one) => one.total_chunks.toLocaleString('en'),
  },
  { id: 'size', name: 'Size', look: 'number', sort: (one) => one.total_size, cell: (one) => bytes(one.total_size) },
  { id: 'changed', name: 'Changed', sort: (one) => one.updated_at, cell: (one) => <Time at={one.updated_at} /> },
];

function Documents({ source, onAdd }: { source: KnowledgeSource; onAdd: (() => void) | undefined }) {
  const [{ page, q }, change] = useFilters({ page: '1', q: '' });
  const query = { source: [source.id], page: pageNumber(page), ...(q === '' ? {} : { q }) };
  const documents = useApi('GET /api/v1/knowledge_documents', { query }, { keep: true });
  return (
    <>
      <SearchField
        label="Documents whose title begins with"
        placeholder="Title begins with"
        value={q}
        onChange={(next) => change({ q: next })}
      />
      <PagedTable
        label="Documents"
        loaded={documents}
        columns={documentColumns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        selection={{
          nameOf: (one) => documentName(one, one.id),
          actions: (rows, clear) => (
            <BulkButton
              label={`Delete ${rows.length}`}
              danger
              question="Searches no longer find them. This cannot be undone."
              onRun={async () => {
                await forEachOf(rows, 'deleted', ({ id }) =>
                  call('DELETE /api/v1/knowledge_documents/{document}', { path: { document: id } }),
                );
                refresh('GET /api/v1/knowledge_documents');
                clear();
              }}
            />
          ),
        }}
        empty={
          <Empty
            title={q === '' ? 'No documents yet' : 'No matching documents'}
            action={
              onAdd && q === '' ? (
                <Button kind="primary" onClick={onAdd}>
                  Add the first document
                </Button>
              ) : undefined
            }
          >
            {onAdd
              ? 'Paste a text, drop a file or give web addresses. It is cut into chunks and can be searched a moment later.'
              : 'Press “Read it now”: the documents appear here as they are read.'}
          </Empty>
        }
      />
    </>
  );
}
