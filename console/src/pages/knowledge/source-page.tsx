import { useState } from 'react';
import { Link, useLocation, useSearchParams } from 'wouter';
import { call } from '../../api/client.ts';
import type { KnowledgeIngestion, KnowledgeSource } from '../../api/generated.ts';
import {
  Button,
  bytes,
  CodeField,
  count,
  Empty,
  ErrorNotice,
  Field,
  Json,
  PageHead,
  Pager,
  Progress,
  Shown,
  State,
  Table,
  Time,
} from '../../ui/basics.tsx';
import { Confirm, Dialog, Form } from '../../ui/dialog.tsx';
import { parseObject } from '../../ui/json.ts';
import { useDelayed } from '../../ui/use-delayed.ts';
import { useAction, useLoad } from '../../ui/use-load.ts';
import { SearchPlayground } from './search-playground.tsx';
import { sourceName } from './sources-page.tsx';

const firstPollMs = 400;
const tabs = ['documents', 'search', 'ingestions', 'settings'] as const;
type Tab = (typeof tabs)[number];

/** One source: its documents, a search over them, its ingestions, and its settings. */
export function SourcePage({ id }: { id: string }) {
  const source = useLoad(id, () => call('GET /api/v1/knowledge_sources/{source}', { path: { source: id } }));
  const [params, setParams] = useSearchParams();
  const tab = tabs.find((one) => one === params.get('tab')) ?? 'documents';
  return (
    <>
      <p className="back">
        <Link href="/knowledge">← Knowledge</Link>
      </p>
      <Shown loaded={source}>
        {(found) => (
          <SourceBody
            source={found}
            tab={tab}
            onTab={(next) => setParams(next === 'documents' ? {} : { tab: next }, { replace: true })}
            onChange={source.replace}
          />
        )}
      </Shown>
    </>
  );
}

function SourceBody({
  source,
  tab,
  onTab,
  onChange,
}: {
  source: KnowledgeSource;
  tab: Tab;
  onTab: (tab: Tab) => void;
  onChange: (source: KnowledgeSource) => void;
}) {
  const [adding, setAdding] = useState(false);
  const path = { source: source.id };
  const pushed = source.type === 'knowledge/documents';
  // Polls the newest ingestion while it is active, and reloads documents and history.
  const newest = useLoad(
    source.id,
    () => call('GET /api/v1/knowledge_sources/{source}/ingestions', { path, query: { page_size: 1 } }),
    ({ data }) => (isActive(data[0]) ? firstPollMs : undefined),
  );
  const active = newest.data?.data[0];
  const stamp = `${active?.id}/${active?.status}`;
  const pull = useAction(async () => {
    await call('POST /api/v1/knowledge_sources/{source}/ingest', { path, body: { pull: true } });
    newest.reload();
  });
  return (
    <>
      <PageHead
        title={sourceName(source)}
        lead={
          <>
            <State value={source.state} /> {source.type} · created <Time at={source.created_at} />
          </>
        }
      >
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
      {active && (isActive(active) || active.status === 'failed') ? <Watched ingestion={active} /> : null}
      <div className="tabs" role="tablist" aria-label="Parts of the source">
        {tabs.map((one) => (
          <button key={one} type="button" role="tab" aria-selected={tab === one} onClick={() => onTab(one)}>
            {one.charAt(0).toUpperCase() + one.slice(1)}
          </button>
        ))}
      </div>
      {tab === 'documents' ? (
        <Documents key={stamp} source={source} onAdd={pushed ? () => setAdding(true) : undefined} />
      ) : null}
      {tab === 'search' ? <SearchPlayground source={source.id} /> : null}
      {tab === 'ingestions' ? <Ingestions key={stamp} source={source.id} /> : null}
      {tab === 'settings' ? <Settings source={source} onChange={onChange} /> : null}
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

function isActive(ingestion: KnowledgeIngestion | undefined): boolean {
  return ingestion !== undefined && ['pending', 'running', 'awaiting_callback'].includes(ingestion.status);
}

function Watched({ ingestion }: { ingestion: KnowledgeIngestion }) {
  const { stats, error, status } = ingestion;
  if (status === 'failed')
    return (
      <div className="notice error" role="alert">
        <p>
          <strong>The last ingestion failed.</strong> {String(error?.message ?? '')}
        </p>
        <p>Correct the problem under Settings or in the document, then start it again.</p>
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

function statsText(stats: Record<string, unknown>): string {
  const number = (name: string) => Number(stats[name] ?? 0);
  const parts = [count(number('documents'), 'document'), count(number('chunks'), 'chunk'), bytes(number('bytes'))];
  if (number('pages') > 0) parts.unshift(count(number('pages'), 'page'));
  return parts.join(' · ');
}

function Documents({ source, onAdd }: { source: KnowledgeSource; onAdd: (() => void) | undefined }) {
  const [page, setPage] = useState(1);
  const [search, setSearch] = useState('');
  const q = useDelayed(search);
  const documents = useLoad(`${q}/${page}`, () =>
    call('GET /api/v1/knowledge_documents', { query: { source: [source.id], q, page } }),
  );
  return (
    <>
      <input
        type="search"
        className="search"
        aria-label="Documents whose title begins with"
        placeholder="Title begins with"
        value={search}
        onChange={(event) => {
          setPage(1);
          setSearch(event.target.value);
        }}
      />
      <Shown loaded={documents}>
        {(list) =>
          list.data.length === 0 ? (
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
                ? 'Paste a text or push a file. It is cut into chunks and can be searched a moment later.'
                : 'Press “Read it now”: the documents appear here as they are read.'}
            </Empty>
          ) : (
            <>
              <Table
                columns={['Title', { name: 'Lines', look: 'number' }, { name: 'Size', look: 'number' }, 'Changed']}
              >
                {list.data.map((document) => (
                  <tr key={document.id}>
                    <td className="main">
                      <Link href={`/knowledge/documents/${document.id}`}>
                        {document.title ?? document.source_url ?? document.id}
                      </Link>
                    </td>
                    <td className="number">{document.total_lines.toLocaleString('en')}</td>
                    <td className="number">{bytes(document.total_size)}</td>
                    <td>
                      <Time at={document.updated_at} />
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

function Ingestions({ source }: { source: string }) {
  const [page, setPage] = useState(1);
  const ingestions = useLoad(
    String(page),
    () => call('GET /api/v1/knowledge_sources/{source}/ingestions', { path: { source }, query: { page } }),
    ({ data }) => (data.some(isActive) ? firstPollMs : undefined),
  );
  return (
    <Shown loaded={ingestions}>
      {(list) =>
        list.data.length === 0 ? (
          <Empty title="Nothing has been ingested yet">Each push and each pull is listed here with its result.</Empty>
        ) : (
          <>
            <Table columns={['Ingestion', 'Status', 'Result', 'Started']}>
              {list.data.map((one) => (
                <tr key={one.id}>
                  <td className="main">
                    <code>{one.id}</code>
                  </td>
                  <td>
                    <State value={one.status} />
                  </td>
                  <td className="faint">
                    {one.error ? String(one.error.message ?? one.error.code) : statsText(one.stats)}
                  </td>
                  <td>
                    <Time at={one.created_at} />
                  </td>
                </tr>
              ))}
            </Table>
            <Pager page={list} onPage={setPage} />
          </>
        )
      }
    </Shown>
  );
}

function Settings({ source, onChange }: { source: KnowledgeSource; onChange: (source: KnowledgeSource) => void }) {
  const [payload, setPayload] = useState(JSON.stringify(source.payload ?? {}, null, 2));
  const [asking, setAsking] = useState(false);
  const [, navigate] = useLocation();
  const path = { source: source.id };
  const save = useAction(async () => {
    const body = { payload: parseObject(payload) };
    onChange(await call('PATCH /api/v1/knowledge_sources/{source}', { path, body }));
  });
  const pause = useAction(async () => {
    const state = source.state === 'active' ? ('paused' as const) : ('active' as const);
    onChange(await call('PATCH /api/v1/knowledge_sources/{source}', { path, body: { state } }));
  });
  const remove = useAction(() => call('DELETE /api/v1/knowledge_sources/{source}', { path }));
  return (
    <div className="stack">
      <section className="card">
        <Form submit="Save" busy={save.busy} error={save.error} onSubmit={() => save.run()}>
          <CodeField
            label="Payload"
            hint="What the source reads, and how, as JSON."
            rows={8}
            value={payload}
            onChange={setPayload}
          />
        </Form>
      </section>
      <section className="card">
        <h2>{source.state === 'active' ? 'Pause' : 'Resume'}</h2>
        <p className="hint">A paused source starts no ingestions. Its documents can still be searched.</p>
        <ErrorNotice error={pause.error} />
        <Button busy={pause.busy} onClick={() => pause.run()}>
          {source.state === 'active' ? 'Pause the source' : 'Activate the source'}
        </Button>
      </section>
      <section className="card">
        <h2>Metadata</h2>
        <Json value={source.metadata ?? {}} />
      </section>
      <section className="card">
        <h2>Delete</h2>
        <p className="hint">This also deletes its documents and the history of its ingestions.</p>
        <Button kind="danger" onClick={() => setAsking(true)}>
          Delete the source
        </Button>
      </section>
      {asking ? (
        <Confirm
          title={`Delete ${sourceName(source)}?`}
          action="Delete the source"
          busy={remove.busy}
          error={remove.error}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            if (await remove.run()) navigate('/knowledge');
          }}
        >
          This also deletes all of its documents. It cannot be undone.
        </Confirm>
      ) : null}
    </div>
  );
}

function AddDocument({ source, onAdded, onClose }: { source: string; onAdded: () => void; onClose: () => void }) {
  const [from, setFrom] = useState<'text' | 'file'>('text');
  const [title, setTitle] = useState('');
  const [text, setText] = useState('');
  const [file, setFile] = useState('');
  const [metadata, setMetadata] = useState('{}');
  const files = useLoad('files', () => call('GET /api/v1/files', { query: { page_size: 100 } }));
  const push = useAction(async () => {
    const content =
      from === 'file'
        ? { file }
        : { content: { data: text, content_type: 'text/markdown', filename: `${title || 'text'}.md` } };
    await call('POST /api/v1/knowledge_sources/{source}/ingest', {
      path: { source },
      body: { ...content, ...(title === '' ? {} : { title }), metadata: parseObject(metadata), on_active: 'queue' },
    });
    onAdded();
  });
  return (
    <Dialog title="Add a document" onClose={onClose}>
      <div className="tabs" role="tablist" aria-label="Where the document comes from">
        <button type="button" role="tab" aria-selected={from === 'text'} onClick={() => setFrom('text')}>
          Text
        </button>
        <button type="button" role="tab" aria-selected={from === 'file'} onClick={() => setFrom('file')}>
          Uploaded file
        </button>
      </div>
      <Form
        submit="Add the document"
        busy={push.busy}
        error={push.error}
        onSubmit={() => push.run()}
        onCancel={onClose}
      >
        <Field label="Title (optional)">
          {(id) => <input id={id} value={title} onChange={(event) => setTitle(event.target.value)} />}
        </Field>
        {from === 'text' ? (
          <Field label="Text" hint="Plain or Markdown; headings become the path of each chunk.">
            {(id, described) => (
              <textarea
                id={id}
                {...described}
                rows={8}
                required
                value={text}
                onChange={(event) => setText(event.target.value)}
              />
            )}
          </Field>
        ) : (
          <Field label="File" hint="If the file is not in the list, upload it under Files first.">
            {(id, described) => (
              <select id={id} {...described} required value={file} onChange={(event) => setFile(event.target.value)}>
                <option value="">Choose a file</option>
                {files.data?.data.map((one) => (
                  <option key={one.id} value={one.id}>
                    {one.filename}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        <Field label="Metadata" hint="A JSON object for search filters.">
          {(id, described) => (
            <input
              id={id}
              {...described}
              className="code"
              value={metadata}
              onChange={(event) => setMetadata(event.target.value)}
            />
          )}
        </Field>
      </Form>
    </Dialog>
  );
}
