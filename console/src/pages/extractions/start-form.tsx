import { useState } from 'react';
import { useLocation, useSearchParams } from 'wouter';
import { call } from '../../api/client.ts';
import { uploadFile } from '../../api/upload.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { useSession } from '../../session.tsx';
import { Form } from '../../ui/dialog.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { Progress } from '../../ui/progress.tsx';
import { refresh, useAction, useApi } from '../../ui/query.ts';
import { requestSnippets, Snippets } from '../../ui/snippets.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { useUnsaved } from '../../ui/unsaved.ts';
import { dataMembers, noData, SchemaFields, schemaMistake } from './schema-fields.tsx';
import { plainSite, SiteOptions, siteFields, siteMembers } from './site-options.tsx';

/** Starts an extraction of a file, a page or a site, with every option of the API. */
export function StartForm() {
  const { place, isDeveloper } = useSession();
  const [params] = useSearchParams();
  const [, navigate] = useLocation();
  const [from, setFrom] = useState<'file' | 'url'>('file');
  const [file, setFile] = useState(params.get('file') ?? '');
  const [url, setUrl] = useState('');
  const [mode, setMode] = useState<'link' | 'site'>('link');
  const [site, setSite] = useState(plainSite);
  const [destination, setDestination] = useState<'storage' | 'config'>('storage');
  const [path, setPath] = useState('');
  const [agent, setAgent] = useState('');
  const [data, setData] = useState(noData);
  const [upload, setUpload] = useState<number>();
  useUnsaved(site.include !== '' || site.exclude !== '' || (data.wanted && data !== noData));
  const org = isDeveloper && place.org !== undefined ? { org: place.org } : {};
  const files = useApi('GET /api/v1/files', { query: { page_size: 50, ...org } });

  const mistake = schemaMistake(data);
  const body = {
    ...(from === 'file' ? { file } : { url: url.trim(), mode, ...(mode === 'site' ? siteMembers(site) : {}) }),
    ...(mistake === undefined ? dataMembers(data) : {}),
    destination_kind: destination,
    ...(path.trim() === '' ? {} : { destination_path: path.trim() }),
    ...org,
    ...(agent === '' ? {} : { agent }),
  };
  const start = useAction(async () => {
    dataMembers(data);
    const started = await call('POST /api/v1/extractions', { body });
    navigate(`/extractions/${started.id}`);
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
        hint="PDF, Word, Excel, PowerPoint, OpenDocument, HTML, e-mail, pictures with text and more; up to 10 MiB."
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
      <div className="row">
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
        <Field label="Scope">
          {(id) => (
            <select id={id} value={mode} onChange={(event) => setMode(event.target.value as 'link' | 'site')}>
              <option value="link">This page alone</option>
              <option value="site">The whole site below it</option>
            </select>
          )}
        </Field>
      </div>
      {mode === 'site' ? (
        <SiteOptions value={site} error={start.error} mayIgnoreRobots={isDeveloper} onChange={setSite} />
      ) : null}
    </>
  );
  return (
    <section className="card">
      <Form
        submit="Extract"
        busy={start.busy}
        error={start.error ?? send.error}
        shownFields={['file', 'url', 'destination_path', 'agent', 'schema', 'instructions', ...siteFields]}
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
          <summary>Data by a schema</summary>
          <SchemaFields
            value={data}
            errors={{
              schema: mistake ?? fieldError(start.error, 'schema'),
              instructions: fieldError(start.error, 'instructions'),
            }}
            onChange={setData}
          />
        </details>
        <details>
          <summary>Destination</summary>
          <div className="row">
            <Field
              label="Stored as"
              hint={
                destination === 'storage'
                  ? 'A file for each output, which people can see and share.'
                  : 'A versioned entry for each output, under Config.'
              }
            >
              {(id, described) => (
                <select
                  id={id}
                  {...described}
                  value={destination}
                  onChange={(event) => setDestination(event.target.value as 'storage' | 'config')}
                >
                  <option value="storage">Files</option>
                  <option value="config">Config entries</option>
                </select>
              )}
            </Field>
            <Field
              label="Name prefix"
              hint="With a prefix, an output is named prefix/name.md."
              error={fieldError(start.error, 'destination_path')}
            >
              {(id, described) => (
                <input
                  id={id}
                  {...described}
                  required={destination === 'config'}
                  value={path}
                  onChange={(event) => setPath(event.target.value)}
                />
              )}
            </Field>
            <Field label="Agent" hint="Owns the job and its outputs." error={fieldError(start.error, 'agent')}>
              {(id) => (
                <PrincipalPicker label="Agent" id={id} kinds={['agent']} any="None" value={agent} onChange={setAgent} />
              )}
            </Field>
          </div>
        </details>
        <details>
          <summary>As code</summary>
          <Snippets label="This extraction" snippets={requestSnippets('POST', '/api/v1/extractions', body)} />
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
