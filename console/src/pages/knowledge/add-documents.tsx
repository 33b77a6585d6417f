import { useState } from 'react';
import { call } from '../../api/client.ts';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { DropZone } from '../../ui/drop-zone.tsx';
import { CodeField, Field, fieldError } from '../../ui/field.tsx';
import { parseObject } from '../../ui/json.ts';
import { refresh, useAction, useApi } from '../../ui/query.ts';
import { Tabs } from '../../ui/tabs.tsx';
import { startUploads } from '../../uploads.ts';

const ingest = 'POST /api/v1/knowledge_sources/{source}/ingest';

/** Turns dropped files into documents. The uploads continue on other pages. */
export function DropDocuments({ source, onAdded }: { source: string; onAdded: () => void }) {
  return (
    <DropZone
      label="Files to add as documents"
      button="Choose files"
      kind="plain"
      onFiles={(files) =>
        startUploads(files, {}, async (file) => {
          const body = { file: file.id, title: file.filename, on_active: 'queue' as const };
          await call(ingest, { path: { source }, body });
          refresh('GET /api/v1/knowledge_documents', 'GET /api/v1/knowledge_sources/{source}/ingestions');
          onAdded();
        })
      }
    >
      <p>Drop files here to add them as documents, or</p>
    </DropZone>
  );
}

type From = 'text' | 'file' | 'urls';

/** Adds a text, an uploaded file, or the pages at some addresses. */
export function AddDocument({
  source,
  onAdded,
  onClose,
}: {
  source: string;
  onAdded: () => void;
  onClose: () => void;
}) {
  const [from, setFrom] = useState<From>('text');
  const [title, setTitle] = useState('');
  const [text, setText] = useState('');
  const [urls, setUrls] = useState('');
  const [file, setFile] = useState('');
  const [metadata, setMetadata] = useState('{}');
  const files = useApi('GET /api/v1/files', { query: { page_size: 100 } }, { enabled: from === 'file' });
  const push = useAction(
    async () => {
      const rest = { metadata: parseObject(metadata), on_active: 'queue' as const };
      if (from === 'urls') await addPages(source, urls, rest);
      else {
        const content =
          from === 'file'
            ? { file }
            : { content: { data: text, content_type: 'text/markdown', filename: `${title || 'text'}.md` } };
        await call(ingest, { path: { source }, body: { ...content, ...(title === '' ? {} : { title }), ...rest } });
      }
      onAdded();
    },
    { say: 'Added. It can be searched in a moment.' },
  );
  const textField = (
    <Field
      label="Text"
      hint="Plain or Markdown; headings become the path of each chunk."
      error={fieldError(push.error, 'content', 'content.data')}
    >
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
  );
  const fileField = (
    <Field label="File" hint="Or drop files on the page of the source." error={fieldError(push.error, 'file')}>
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
  );
  const urlsField = (
    <Field label="Addresses" hint="One per line. The pages are read once, as Markdown.">
      {(id, described) => (
        <textarea
          id={id}
          {...described}
          rows={5}
          required
          placeholder="https://example.com/guide"
          value={urls}
          onChange={(event) => setUrls(event.target.value)}
        />
      )}
    </Field>
  );
  return (
    <Dialog title="Add a document" onClose={onClose}>
      <Form
        submit="Add the document"
        busy={push.busy}
        error={push.error}
        shownFields={['content', 'content.data', 'file']}
        onSubmit={() => push.run()}
        onCancel={onClose}
      >
        <Tabs<From>
          label="Where the document comes from"
          value={from}
          onChange={setFrom}
          tabs={[
            { id: 'text', name: 'Type a text', panel: textField },
            { id: 'urls', name: 'Web pages', panel: urlsField },
            { id: 'file', name: 'Uploaded file', panel: fileField },
          ]}
        />
        {from === 'urls' ? null : (
          <Field label="Title (optional)">
            {(id) => <input id={id} value={title} onChange={(event) => setTitle(event.target.value)} />}
          </Field>
        )}
        <CodeField
          label="Metadata"
          hint="A JSON object for search filters."
          rows={2}
          value={metadata}
          onChange={setMetadata}
        />
      </Form>
    </Dialog>
  );
}

const pageWaitMs = 1_000;
const pageWaitsMax = 120;

/** Reads each page as Markdown, and pushes the result to the source. */
async function addPages(
  source: string,
  text: string,
  rest: { metadata: Record<string, unknown>; on_active: 'queue' },
): Promise<void> {
  const urls = text.split(/\s+/).filter(Boolean);
  if (urls.length === 0) throw new Error('Enter at least one address.');
  for (const url of urls) {
    const { id } = await call('POST /api/v1/extractions', { body: { url, mode: 'link', destination_kind: 'storage' } });
    const done = await extractionEnd(id);
    const output = done.outputs?.find(({ state }) => state === 'done');
    if (!output?.file) throw new Error(`${url} could not be read: ${done.error?.message ?? 'it has no text'}`);
    const title = output.title ?? url;
    const metadata = { ...rest.metadata, url };
    await call(ingest, { path: { source }, body: { file: output.file.id, title, ...rest, metadata } });
  }
}

async function extractionEnd(id: string) {
  for (let waits = 0; waits < pageWaitsMax; waits++) {
    const found = await call('GET /api/v1/extractions/{extraction}', { path: { extraction: id } });
    if (found.state !== 'running') return found;
    await new Promise((resolve) => setTimeout(resolve, pageWaitMs));
  }
  throw new Error('The page takes too long. Look at the extraction later.');
}
