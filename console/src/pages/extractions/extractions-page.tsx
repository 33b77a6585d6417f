import { useState } from 'react';
import { Link, useLocation, useSearchParams } from 'wouter';
import { call } from '../../api/client.ts';
import type { Extraction } from '../../api/generated.ts';
import { uploadFile } from '../../api/upload.ts';
import { useSession } from '../../session.tsx';
import { Empty, Field, fieldError, PageHead, Pager, Progress, Shown, State, Table, Time } from '../../ui/basics.tsx';
import { Form } from '../../ui/dialog.tsx';
import { useAction, useLoad } from '../../ui/use-load.ts';
import { FileName } from '../files/file-name.tsx';

const firstPollMs = 700;

/** All extractions, and the form that starts one. */
export function ExtractionsPage() {
  const [page, setPage] = useState(1);
  const [state, setState] = useState('');
  const loaded = useLoad(
    `${page}/${state}`,
    () =>
      call('GET /api/v1/extractions', {
        query: { page, ...(state === '' ? {} : { state: state as Extraction['state'] }) },
      }),
    ({ data }) => (data.some((one) => one.state === 'running') ? firstPollMs : undefined),
  );
  return (
    <>
      <PageHead title="Extractions" lead="Text out of documents, web pages and whole sites, as Markdown." />
      <StartForm />
      <div className="toolbar">
        <h2>Started before</h2>
        <select
          aria-label="Which extractions"
          value={state}
          onChange={(event) => {
            setPage(1);
            setState(event.target.value);
          }}
        >
          <option value="">All</option>
          <option value="running">Running</option>
          <option value="done">Done</option>
          <option value="failed">Failed</option>
        </select>
      </div>
      <Shown loaded={loaded}>
        {(list) =>
          list.data.length === 0 ? (
            <Empty title={state === '' ? 'No extraction yet' : `None is ${state}`}>
              Give a document or a web address above. The Markdown appears beside the original, and as a file.
            </Empty>
          ) : (
            <>
              <Table columns={['Source', 'State', 'Outputs', 'Started']}>
                {list.data.map((one) => (
                  <tr key={one.id}>
                    <td className="main">
                      <Link href={`/extractions/${one.id}`}>
                        <Source extraction={one} />
                      </Link>
                    </td>
                    <td>
                      <State value={one.state} />
                    </td>
                    <td className="faint">
                      {one.output_count}
                      {one.progress.failed > 0 ? `, ${one.progress.failed} failed` : ''}
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
  const files = useLoad('files', () => call('GET /api/v1/files', { query: { page_size: 50, ...org } }));

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
      files.reload();
      setFile(stored.id);
    } finally {
      setUpload(undefined);
    }
  });

  return (
    <section className="card">
      <div className="tabs" role="tablist" aria-label="What to extract">
        <button type="button" role="tab" aria-selected={from === 'file'} onClick={() => setFrom('file')}>
          From a file
        </button>
        <button type="button" role="tab" aria-selected={from === 'url'} onClick={() => setFrom('url')}>
          From the web
        </button>
      </div>
      <Form submit="Extract" busy={start.busy} error={start.error ?? send.error} onSubmit={() => start.run()}>
        {from === 'file' ? (
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
        ) : (
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
        )}
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
