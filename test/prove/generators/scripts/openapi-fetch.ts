import createClient from 'openapi-fetch';
import type { paths } from './openapi-typescript.d.ts';

const { BASE = '', KEY = '', PUBLISHABLE_KEY = '' } = process.env;
const { GET, POST, PUT } = createClient<paths>({ baseUrl: BASE, headers: { 'x-api-key': KEY } });
/** The data of a response, which an error does not have. */
const must = <T>({ data, error }: { data?: T; error?: unknown }): T => {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
};
/** The data of the last event of a stream. */
const lastEvent = async <T>(stream: Promise<{ data?: T }>): Promise<T> => {
  const text = await new Response((await stream).data as ReadableStream).text();
  return JSON.parse(text.match(/.*^data: (.*)$/ms)?.[1] ?? 'null');
};
/** `openapi-typescript` types bytes as text. */
const bytes = { bodySerializer: (body: string) => body };

const user = must(await POST('/api/v1/users', { body: { email: 'ada@example.com', password: 'a long enough one' } }));
const session = must(
  await POST('/api/v1/auth/login', {
    body: { email: 'ada@example.com', password: 'a long enough one' },
    headers: { 'x-api-key': PUBLISHABLE_KEY },
  }),
);
console.log('signed in', session.token_type, (session.access_token ?? '').length > 20);

const file = must(
  await POST('/api/v1/files/uploads', {
    body: '<h1>Refunds</h1><p>A refund takes five days.</p>',
    params: { header: { 'x-filename': 'refunds.html' }, query: { user: user.id } },
    headers: { 'content-type': 'text/html' },
    ...bytes,
  }),
);
const plain = must(
  await POST('/api/v1/files/uploads', {
    body: 'A parcel takes two days.',
    params: { header: { 'x-filename': 'parcels.txt' }, query: { user: user.id } },
    headers: { 'content-type': 'application/octet-stream' },
    ...bytes,
  }),
);
console.log('uploaded', file.content_type, plain.content_type);

const names: string[] = [];
for (let page = 1, more = true; more; page++) {
  const list = must(await GET('/api/v1/files', { params: { query: { user: user.id, page, page_size: 1 } } }));
  names.push(...list.data.map(({ filename }) => filename));
  more = list.has_next;
}
console.log('listed', names.sort().join());

const extraction = must(await POST('/api/v1/extractions', { body: { file: file.id, destination_kind: 'storage' } }));
console.log('extracted', extraction.state, extraction.outputs?.[0]?.file?.content_type);

const source = must(await POST('/api/v1/knowledge_sources', { body: { type: 'knowledge/documents', user: user.id } }));
const ingestion = must(
  await POST('/api/v1/knowledge_sources/{source}/ingest', {
    params: { path: { source: source.id } },
    body: { title: 'Refunds', content: { data: 'A refund takes five days.' } },
  }),
);
const ingested = await lastEvent(
  GET('/api/v1/knowledge_ingestions/{ingestion}/stream', {
    params: { path: { ingestion: ingestion.id } },
    parseAs: 'stream',
  }),
);
const found = must(await POST('/api/v1/knowledge_search', { body: { sources: [source.id], query: 'refund' } }));
console.log('found', (ingested as unknown as typeof ingestion).status, found.data[0]?.content);

const automation = must(
  await POST('/api/v1/automations', {
    body: {
      name: 'Greet',
      type: 'invoked',
      workflow: {
        kind: 'WorkflowGraph',
        version: 1,
        start_node: 'hello',
        nodes: [{ id: 'hello', kind: 'complete', result: 'Hello {{$.name}}' }],
      },
    },
  }),
);
const path = { automation: automation.id };
must(await POST('/api/v1/automations/{automation}/activate', { params: { path } }));
const run = must(
  await POST('/api/v1/automations/{automation}/invoke', { params: { path }, body: { payload: { name: 'Ada' } } }),
);
const ended = await lastEvent(
  GET('/api/v1/automation_runs/{automation_run}/stream', {
    params: { path: { automation_run: run.id } },
    parseAs: 'stream',
  }),
);
console.log('ran', (ended as unknown as typeof run).status, (ended as unknown as typeof run).result);

const entry = must(
  await PUT('/api/v1/kv/{key}', { params: { path: { key: 'theme' } }, body: { value: 'dark', user: user.id } }),
);
const stale = await PUT('/api/v1/kv/{key}', {
  params: { path: { key: 'theme' }, header: { 'If-Match': '"other"' } },
  body: { value: 'light', user: user.id },
});
console.log('wrote', entry.value, stale.response.status, stale.error?.error.code);

const form = must(
  await POST('/v1/files', {
    body: { file: 'hello', purpose: 'assistants' },
    bodySerializer: ({ file: contents, purpose }) => {
      const fields = new FormData();
      fields.set('file', new File([contents], 'form.txt', { type: 'text/plain' }));
      fields.set('purpose', purpose);
      return fields;
    },
  }),
);
console.log('form', form.filename, form.bytes);

const missing = await GET('/api/v1/files/{file}', { params: { path: { file: 'fil_missing' } } });
const wrong = await POST('/api/v1/users', { body: { email: 'nobody' } });
console.log('refused', missing.error?.error.code, wrong.error?.error.fields[0]?.field);
