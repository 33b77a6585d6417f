import * as api from './orval/api.ts';

const { KEY = '', PUBLISHABLE_KEY = '' } = process.env;
const headers = { 'x-api-key': KEY };
/** The data of a response with this status, which narrows its type. */
const ok = <R extends { status: number; data: unknown }>(
  response: R,
): Extract<R, { status: 200 | 201 | 202 }>['data'] => {
  if (response.status > 202) throw new Error(JSON.stringify(response.data));
  return response.data as Extract<R, { status: 200 | 201 | 202 }>['data'];
};
/** The data of the last event of a stream. `orval` reads a stream to its end as text. */
const lastEvent = <T>(text: T): T => JSON.parse(String(text).match(/.*^data: (.*)$/ms)?.[1] ?? 'null');

const password = 'a long enough one';
const user = ok(await api.createUser({ email: 'ada@example.com', password }, { headers }));
const session = ok(
  await api.login({ email: 'ada@example.com', password }, { headers: { 'x-api-key': PUBLISHABLE_KEY } }),
);
console.log('signed in', session.token_type, (session.access_token ?? '').length > 20);

const file = ok(
  await api.uploadFile(
    new Blob(['<h1>Refunds</h1><p>A refund takes five days.</p>']),
    { user: user.id },
    { headers: { ...headers, 'x-filename': 'refunds.html', 'Content-Type': 'text/html' } },
  ),
);
const plain = ok(
  await api.uploadFile(
    new Blob(['A parcel takes two days.']),
    { user: user.id },
    { headers: { ...headers, 'x-filename': 'parcels.txt' } },
  ),
);
console.log('uploaded', file.content_type, plain.content_type);

const names: string[] = [];
for (let page = 1, more = true; more; page++) {
  const list = ok(await api.listFiles({ user: user.id, page, page_size: 1 }, { headers }));
  names.push(...list.data.map(({ filename }) => filename));
  more = list.has_next;
}
console.log('listed', names.sort().join());

const extraction = ok(await api.createExtraction({ file: file.id, destination_kind: 'storage' }, { headers }));
console.log('extracted', extraction.state, extraction.outputs?.[0]?.file?.content_type);

const source = ok(await api.createKnowledgeSource({ type: 'knowledge/documents', user: user.id }, { headers }));
const ingestion = ok(
  await api.ingestIntoKnowledgeSource(
    source.id,
    { title: 'Refunds', content: { data: 'A refund takes five days.' } },
    { headers },
  ),
);
const ingested = lastEvent(ok(await api.streamKnowledgeIngestion(ingestion.id, { headers })));
const found = ok(await api.searchKnowledge({ sources: [source.id], query: 'refund' }, { headers }));
console.log('found', ingested.status, found.data[0]?.content);

const automation = ok(
  await api.createAutomation(
    {
      name: 'Greet',
      type: 'invoked',
      workflow: {
        kind: 'WorkflowGraph',
        version: 1,
        start_node: 'hello',
        nodes: [{ id: 'hello', kind: 'complete', result: 'Hello {{$.name}}' }],
      },
    },
    { headers },
  ),
);
ok(await api.activateAutomation(automation.id, { headers }));
const run = ok(await api.invokeAutomation(automation.id, { payload: { name: 'Ada' } }, { headers }));
const ended = lastEvent(ok(await api.streamAutomationRun(run.id, { headers })));
console.log('ran', ended.status, ended.result);

const entry = ok(await api.putKvEntry('theme', { value: 'dark', user: user.id }, { headers }));
const stale = await api.putKvEntry(
  'theme',
  { value: 'light', user: user.id },
  { headers: { ...headers, 'If-Match': '"other"' } },
);
console.log('wrote', entry.value, stale.status, stale.status === 412 && stale.data.error.code);

const form = ok(
  await api.openaiCreateFile(
    { file: new File(['hello'], 'form.txt', { type: 'text/plain' }), purpose: 'assistants' },
    { headers },
  ),
);
console.log('form', form.filename, form.bytes);

const missing = await api.getFile('fil_missing', {}, { headers });
const wrong = await api.createUser({ email: 'nobody' }, { headers });
console.log(
  'refused',
  missing.status === 404 && missing.data.error.code,
  wrong.status === 422 && wrong.data.error.fields[0]?.field,
);
