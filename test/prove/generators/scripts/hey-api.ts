import { client } from './hey-api/client.gen.ts';
import {
  activateAutomation,
  createAutomation,
  createExtraction,
  createKnowledgeSource,
  createUser,
  getFile,
  ingestIntoKnowledgeSource,
  invokeAutomation,
  listFiles,
  login,
  openaiCreateFile,
  putKvEntry,
  searchKnowledge,
  streamAutomationRun,
  streamKnowledgeIngestion,
  uploadFile,
} from './hey-api/index.ts';

const { BASE = '', KEY = '', PUBLISHABLE_KEY = '' } = process.env;
client.setConfig({ baseUrl: BASE, auth: ({ name }) => (name === 'x-api-key' ? KEY : undefined) });
const throwOnError = true;

const { data: user } = await createUser({
  body: { email: 'ada@example.com', password: 'a long enough one' },
  throwOnError,
});
const { data: session } = await login({
  body: { email: 'ada@example.com', password: 'a long enough one' },
  headers: { 'x-api-key': PUBLISHABLE_KEY },
  throwOnError,
});
console.log('signed in', session.token_type, (session.access_token ?? '').length > 20);

const { data: file } = await uploadFile({
  body: new Blob(['<h1>Refunds</h1><p>A refund takes five days.</p>'], { type: 'text/html' }),
  headers: { 'x-filename': 'refunds.html', 'Content-Type': 'text/html' },
  query: { user: user.id },
  throwOnError,
});
const { data: plain } = await uploadFile({
  body: new Blob(['A parcel takes two days.']),
  headers: { 'x-filename': 'parcels.txt' },
  query: { user: user.id },
  throwOnError,
});
console.log('uploaded', file.content_type, plain.content_type);

const names: string[] = [];
for (let page = 1, more = true; more; page++) {
  const { data: list } = await listFiles({ query: { user: user.id, page, page_size: 1 }, throwOnError });
  names.push(...list.data.map(({ filename }) => filename));
  more = list.has_next;
}
console.log('listed', names.sort().join());

const { data: extraction } = await createExtraction({
  body: { file: file.id, destination_kind: 'storage' },
  throwOnError,
});
console.log('extracted', extraction.state, extraction.outputs?.[0]?.file?.content_type);

const { data: source } = await createKnowledgeSource({
  body: { type: 'knowledge/documents', user: user.id },
  throwOnError,
});
const { data: ingestion } = await ingestIntoKnowledgeSource({
  path: { source: source.id },
  body: { title: 'Refunds', content: { data: 'A refund takes five days.' } },
  throwOnError,
});
let status: string = ingestion.status;
const ingestions = await streamKnowledgeIngestion({ path: { ingestion: ingestion.id } });
for await (const event of ingestions.stream) status = event.status;
const { data: found } = await searchKnowledge({ body: { sources: [source.id], query: 'refund' }, throwOnError });
console.log('found', status, found.data[0]?.content);

const { data: automation } = await createAutomation({
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
  throwOnError,
});
await activateAutomation({ path: { automation: automation.id }, throwOnError });
const { data: run } = await invokeAutomation({
  path: { automation: automation.id },
  body: { payload: { name: 'Ada' } },
  throwOnError,
});
let ended: [string, unknown] = [run.status, run.result];
const runs = await streamAutomationRun({ path: { automation_run: run.id } });
for await (const event of runs.stream) ended = [event.status, event.result];
console.log('ran', ...ended);

const { data: entry } = await putKvEntry({
  path: { key: 'theme' },
  body: { value: 'dark', user: user.id },
  throwOnError,
});
const stale = await putKvEntry({
  path: { key: 'theme' },
  body: { value: 'light', user: user.id },
  headers: { 'If-Match': '"other"' },
});
console.log('wrote', entry.value, stale.response?.status, stale.error?.error.code);

const { data: form } = await openaiCreateFile({
  body: { file: new File(['hello'], 'form.txt', { type: 'text/plain' }), purpose: 'assistants' },
  throwOnError,
});
console.log('form', form.filename, form.bytes);

const missing = await getFile({ path: { file: 'fil_missing' } });
const wrong = await createUser({ body: { email: 'nobody' } });
console.log('refused', missing.error?.error.code, wrong.error?.error.fields?.[0]?.field);
