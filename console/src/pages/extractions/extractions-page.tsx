import { useState } from 'react';
import { Link, useLocation, useSearchParams } from 'wouter';
import { call } from '../../api/client.ts';
import type { Extraction } from '../../api/generated.ts';
import { uploadFile } from '../../api/upload.ts';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { forEachOf } from '../../ui/bulk.ts';
import { Form } from '../../ui/dialog.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { bytes } from '../../ui/format.ts';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { Progress } from '../../ui/progress.tsx';
import { refresh, useAction, useApi } from '../../ui/query.ts';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { FileName } from '../files/file-name.tsx';
import { BulkButton } from '../runs/runs-page.tsx';

const firstPollMs = 700;

const columns: Column<Extraction>[] = [
  {
    id: 'source',
    name: 'Source',
    look: 'main',
    sort: ({ url, file }) => url ?? file ?? '',
    cell: (one) => (
      <Link href={`/extractions/${one.id}`}>
        <Source extraction={one} />
      </Link>
    ),
  },
  { id: 'state', name: 'State', sort: ({ state }) => state, cell: ({ state }) => <State value={state} /> },
  {
    id: 'outputs',
    name: 'Outputs',
    sort: (one) => one.output_count,
    cell: ({ output_count, progress }) => (
      <span className="faint">
        {output_count}
        {progress.failed > 0 ? `, ${progress.failed} failed` : ''}
      </span>
    ),
  },
  { id: 'size', name: 'Size', look: 'number', sort: (one) => one.byte_count, cell: (one) => bytes(one.byte_count) },
  { id: 'started', name: 'Started', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
];

/** All extractions, and the form that starts one. */
export function ExtractionsPage() {
  const [{ page, state, kind }, change] = useFilters({ page: '1', state: '', kind: '' });
  const query = {
    page: pageNumber(page),
    ...(state === '' ? {} : { state: state as Extraction['state'] }),
    ...(kind === '' ? {} : { kind: kind as Extraction['kind'] }),
  };
  const poll = ({ data }: { data: Extraction[] }) =>
    data.some((one) => one.state === 'running') ? firstPollMs : undefined;
  const loaded = useApi('GET /api/v1/extractions', { query }, { poll, keep: true });
  return (
    <>
      <PageHead title="Extractions" lead="Text out of documents, web pages and whole sites, as Markdown." />
      <StartForm />
      <div className="toolbar">
        <h2>Started before</h2>
        <select aria-label="Of which kind" value={kind} onChange={(event) => change({ kind: event.target.value })}>
          <option value="">All kinds</option>
          <option value="document">Documents</option>
          <option value="link">Pages</option>
          <option value="site">Sites</option>
        </select>
        <select
          aria-label="Which extractions"
          value={state}
          onChange={(event) => change({ state: event.target.value })}
        >
          <option value="">All</option>
          <option value="running">Running</option>
          <option value="done">Done</option>
          <option value="failed">Failed</option>
        </select>
      </div>
      <PagedTable
        label="Extractions"
        loaded={loaded}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        selection={{
          nameOf: ({ url, file, id }) => url ?? file ?? id,
          actions: (rows, clear) => (
            <BulkButton
              label={`Remove ${rows.length}`}
              danger
              onRun={async () => {
                if (!window.confirm(`Remove ${rows.length} extractions? The files that they have written stay.`))
                  return;
                await forEachOf(rows, 'removed', ({ id }) =>
                  call('DELETE /api/v1/extractions/{extraction}', { path: { extraction: id } }),
                );
                refresh('GET /api/v1/extractions');
                clear();
              }}
            />
          ),
        }}
        empty={
          <Empty title={state === '' && kind === '' ? 'No extraction yet' : 'No matching extractions'}>
            Give a document or a web address above. The Markdown appears beside the original, and as a file.
          </Empty>
        }
      />
    </>
  );
}

/** What was read: the file by its name, the page or site by its address. */
function Source({ extraction: { kind, url, file } }: { extraction: Extraction }) {
  if (file !== undefined) return <FileName id={file} />;
  return (
    <>
      {url}
      {kind === 'site' ? <State value="quiet" label="site" /> : null}
    </>
  );
}

function StartForm() {
  const { place, isDeveloper } = useSession();
  const [params] = useSearchParams();
  const [, navigate] = useLocation();
  const givenFile = params.get('file') ?? '';
  const [from, setFrom] = useState<'file' | 'url'>('file');
  const [file, setFile] = useState(givenFile);
  const [url, setUrl] = useState('');
  const [mode, setMode] = useState<'link' | 'site'>('link');
  const [maxPages, setMaxPages] = useState('100');
  const [path, setPath] = useState('');
  const [upload, setUpload] = useState<number>();
  const org = isDeveloper && place.org !== undefined ? { org: place.org } : {};
  const files = useApi('GET /api/v1/files', { query: { page_size: 50, ...org } });

  const start = useAction(async () => {
    const body = {
      destination_kind: 'storage' as const,
      ...(path.trim() === '' ? {} : { destination_path: path.trim() }),
      ...org,
      ...(from === 'file'
        ? { file }
        : { url: url.trim(), mode, ...(mode === 'site' ? { max_pages: Number(maxPages) } : {}) }),
    };
    const made = await call('POST /api/v1/extractions', { body });
    navigate(`/extractions/${made.id}`);
  });

  const send = useAction(async (chosen: File) => {
    setUpload(0);
    try {
      const stored = await uploadFile(chosen, org, setUpload, new AbortController().signal);
      refresh('GET /api/v1/files');
      setFile(stored.id);
    } finally {
      setUpload(undefined);
    }
  });

  const filePanel = (
    <div className="row">
      <Field
        label="File"
        hint="PDF, Word, Excel, PowerPoint, OpenDocument, HTML, e-mail, pictures with text and more; up to 10 MB."
        error={fieldError(start.error, 'file')}
      >
        {(id, described) => (
          <select id={id} {...described} required value={file} onChange={(event) => setFile(event.target.value)}>
            <option value="">Choose a file</option>
            {file !== '' && !files.data?.data.some((one) => one.id === file) ? (
              <option value={file}>{file}</option>
            ) : null}
            {files.data?.data.map((one) => (
              <option key={one.id} value={one.id}>
                {one.filename}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Or a new one">
        {(id) =>
          upload === undefined ? (
            <input
              id={id}
              type="file"
              onChange={(event) => {
                const [chosen] = event.target.files ?? [];
                if (chosen) void send.run(chosen);
              }}
            />
          ) : (
            <Progress part={upload} label="Upload" />
          )
        }
      </Field>
    </div>
  );
  const urlPanel = (
    <>
      <Field label="Address" error={fieldError(start.error, 'url')}>
        {(id, described) => (
          <input
            id={id}
            {...described}
            type="url"
            required
            placeholder="https://example.com/guide"
            value={url}
            onChange={(event) => setUrl(event.target.value)}
          />
        )}
      </Field>
      <div className="row">
        <Field label="How much">
          {(id) => (
            <select id={id} value={mode} onChange={(event) => setMode(event.target.value as 'link' | 'site')}>
              <option value="link">This page alone</option>
              <option value="site">The whole site from here on</option>
            </select>
          )}
        </Field>
        {mode === 'site' ? (
          <Field label="Pages at most" error={fieldError(start.error, 'max_pages')}>
            {(id, described) => (
              <input
                id={id}
                {...described}
                type="number"
                min={1}
                required
                value={maxPages}
                onChange={(event) => setMaxPages(event.target.value)}
              />
            )}
          </Field>
        ) : null}
      </div>
    </>
  );
  return (
    <section className="card">
      <Form
        submit="Extract"
        busy={start.busy}
        error={start.error ?? send.error}
        shownFields={['file', 'url', 'max_pages', 'destination_path']}
        onSubmit={() => start.run()}
      >
        <Tabs<'file' | 'url'>
          label="What to extract"
          value={from}
          onChange={setFrom}
          tabs={[
            { id: 'file', name: 'From a file', panel: filePanel },
            { id: 'url', name: 'From the web', panel: urlPanel },
          ]}
        />
        <details>
          <summary>Where the Markdown goes</summary>
          <Field
            label="Name prefix"
            hint="Each output is stored as a file; with a prefix it is named prefix/name.md."
            error={fieldError(start.error, 'destination_path')}
          >
            {(id, described) => (
              <input id={id} {...described} value={path} onChange={(event) => setPath(event.target.value)} />
            )}
          </Field>
        </details>
      </Form>
      {start.busy && from === 'file' ? (
        <p className="hint" role="status">
          Reading the document…
        </p>
      ) : null}
    </section>
  );
}
