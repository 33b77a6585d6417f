import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { graphOf } from '../../support/automations.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { uploadHeaders } from '../../support/uploads.ts';

/* The tools that change files, sources and runs, by the official client. */

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const { api, baseUrl, provision } = server;
const { app, member, otherApp, stranger } = await provision.world();
const site = await startSite({ '/a': htmlPage('Page A') });
const clients: Client[] = [];
after(async () => {
  for (const client of clients) await client.close();
  await site.close();
  await server.close();
});

type Structured = Record<string, unknown>;

async function connect({ key, token }: { key?: string; token?: string }): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  const headers: Record<string, string> =
    key === undefined ? { authorization: `Bearer ${token}` } : { 'x-api-key': key };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`), { requestInit: { headers } }));
  clients.push(client);
  return client;
}

async function call(client: Client, name: string, args: Structured) {
  const result = await client.callTool({ name, arguments: args });
  const texts = (result.content as { text: string }[]).map(({ text }) => text);
  const error = result.isError ? (JSON.parse(texts[1] ?? '{}') as ErrorBody).error : undefined;
  return { data: (result.structuredContent ?? {}) as Structured, text: texts[0] ?? '', error };
}

async function ok(client: Client, name: string, args: Structured): Promise<Structured> {
  const { data, text, error } = await call(client, name, args);
  assert.equal(error, undefined, `${name}: ${text}`);
  return data;
}

async function refused(client: Client, name: string, args: Structured, code: string, field?: string): Promise<void> {
  const { error, text } = await call(client, name, args);
  assert.equal(error?.code, code, `${name}: ${text}`);
  if (field !== undefined)
    assert.ok(
      error.fields.some((each) => each.field === field),
      `${name}: ${text}`,
    );
}

const asKey = await connect({ key: app.secretKey });
const asMember = await connect({ token: member.token });
const source = await knowledgeOf(server, { key: app.secretKey }).createSource({ user: member.id });

test('text and files are stored, read in parts, ingested and found', async () => {
  const stored = await ok(asMember, 'upload_file', { filename: 'ä.md', text: '# Walrus\n\nA wälrus has tusks.' });
  const part = await ok(asMember, 'read_file', { file: stored.file, limit: 13 });
  assert.deepEqual([part.content, part.next_offset], ['# Walrus\n\nA w', 13]);
  const rest = await ok(asMember, 'read_file', { file: stored.file, offset: part.next_offset });
  assert.deepEqual([rest.content, rest.next_offset], ['älrus has tusks.', undefined]);
  const data = Buffer.from([0, 1, 2]).toString('base64');
  const binary = await ok(asMember, 'upload_file', { filename: 'a.bin', data });
  await refused(asMember, 'read_file', { file: binary.file }, 'invalid_parameters', 'file');

  const byFile = await ok(asMember, 'ingest', { source, file: stored.file, title: 'Walrus' });
  assert.equal(byFile.status, 'succeeded');
  const byText = await ok(asMember, 'ingest', { source, text: 'A narwhal has one tusk.', metadata: { year: 1850 } });
  const found = await ok(asMember, 'search_knowledge', { source, query: 'narwhal', filter: { year: 1850 } });
  assert.equal((found.passages as Structured[])[0]?.document, byText.document);
  const page = await ok(asMember, 'extract_url', { url: `${site.origin}/a` });
  const [output] = page.outputs as Structured[];
  const ingested = await ok(asMember, 'ingest', { source, file: output?.file });
  assert.match(String((await ok(asMember, 'read_document', { document: ingested.document })).content), /Page A/);

  await refused(asMember, 'ingest', { source }, 'invalid_parameters', 'text');
  await refused(asMember, 'upload_file', { filename: 'a.txt' }, 'invalid_parameters', 'text');
  for (const other of [await connect({ key: otherApp.secretKey }), await connect({ token: stranger.token })]) {
    await refused(other, 'read_file', { file: stored.file }, 'not_found');
    await refused(other, 'ingest', { source, text: 'x' }, 'not_found');
  }
  const own = await knowledgeOf(server, { key: otherApp.secretKey }).createSource({ user: stranger.id });
  const asStranger = await connect({ token: stranger.token });
  await refused(asStranger, 'ingest', { source: own, file: stored.file }, 'invalid_parameters', 'file');
});

test('an upload link takes the bytes of one file once, and the file is listed for those who may see it', async () => {
  const asStranger = await connect({ token: stranger.token });
  const link = await ok(asMember, 'create_upload_url', {
    filename: 'by-link.txt',
    content_type: 'text/plain',
    size: 9,
  });
  const listed = async (client: Client) =>
    ((await ok(client, 'list_files', { prefix: 'by-link' })).files as Structured[]).map(({ file, size }) => [
      file,
      size,
    ]);
  assert.deepEqual(await listed(asMember), []);
  const put = (body: string) => fetch(String(link.url), { method: String(link.method), body });
  assert.equal((await put('ten bytes!')).status, 413);
  assert.equal((await put('one ocean')).status, 201);
  assert.equal((await put('one ocean')).status, 409);
  assert.deepEqual(await listed(asMember), [[link.file, 9]]);
  assert.deepEqual(await listed(asStranger), []);
  assert.equal((await ok(asMember, 'read_file', { file: link.file })).content, 'one ocean');
  assert.ok(Date.parse(String(link.expires_at)) <= Date.now() + 600_000);
  await refused(
    asMember,
    'create_upload_url',
    { filename: 'a', expires_in: 3_601 },
    'invalid_parameters',
    'expires_in',
  );
});

test('unfinished uploads are listed for callers who can see them', async () => {
  const begun = await api('POST', '/api/v1/uploads', {
    token: member.token,
    headers: uploadHeaders({ filename: 'a.bin', content_type: 'application/octet-stream' }),
  });
  assert.equal(begun.status, 201, begun.text);
  const { uploads } = (await ok(asMember, 'list_uploads', {})) as { uploads: Structured[] };
  assert.deepEqual([uploads.length, uploads[0]?.filename, uploads[0]?.stored, uploads[0]?.size], [1, 'a.bin', 0, 1]);
  const asStranger = await connect({ token: stranger.token });
  assert.deepEqual((await ok(asStranger, 'list_uploads', {})).uploads, []);
  await refused(asMember, 'list_uploads', { page: 0 }, 'invalid_parameters', 'page');
});

test('several entries change together or not at all, and an event is emitted', async () => {
  const operations = [
    { op: 'put', key: 'ship', value: 'Alba' },
    { op: 'increment', key: 'calls', by: 2 },
    { op: 'get', key: 'ship' },
  ];
  const done = (await ok(asMember, 'kv_batch', { operations })).results as Structured[];
  assert.deepEqual(
    done.map(({ op, value }) => [op, value]),
    [
      ['put', 'Alba'],
      ['increment', '2'],
      ['get', 'Alba'],
    ],
  );
  const late = [
    { op: 'delete', key: 'ship', if_match: done[0]?.etag },
    { op: 'put', key: 'calls', value: 'x', if_none_match: '*' },
  ];
  await refused(asMember, 'kv_batch', { operations: late }, 'precondition_failed');
  assert.equal((await ok(asMember, 'kv_get', { key: 'ship' })).value, 'Alba');
  assert.match(String((await ok(asKey, 'emit_event', { name: 'order.paid', payload: { total: 7 } })).event), /^evt_/);
  await assert.rejects(asMember.callTool({ name: 'emit_event', arguments: { name: 'order.paid' } }), /does not exist/);
});

test('runs are signalled, cancelled and retried', async () => {
  const workflow = graphOf({ id: 'a', kind: 'wait_for_signal', name: 'go' });
  const made = await api<{ id: string }>('POST', '/api/v1/automations', {
    key: app.secretKey,
    body: { name: 'wait', lookup_key: 'wait', type: 'invoked', workflow },
  });
  await api('POST', `/api/v1/automations/${made.body.id}/activate`, { key: app.secretKey });
  const first = await ok(asMember, 'invoke_automation', { automation: 'wait', wait_seconds: 0 });
  await ok(asKey, 'signal_run', { run: first.run, name: 'go', payload: { by: 'Ada' } });
  const ended = await ok(asMember, 'read_run', { run: first.run, wait_seconds: 30 });
  assert.deepEqual([ended.status, ended.result], ['completed', { by: 'Ada' }]);
  const second = await ok(asMember, 'invoke_automation', { automation: 'wait', wait_seconds: 0 });
  assert.equal((await ok(asKey, 'cancel_run', { run: second.run })).status, 'cancelled');
  const third = await ok(asKey, 'retry_run', { run: second.run, wait_seconds: 0 });
  assert.notEqual(third.run, second.run);
  await ok(asKey, 'signal_run', { run: third.run, name: 'go' });
  assert.equal((await ok(asKey, 'read_run', { run: third.run, wait_seconds: 30 })).status, 'completed');
  await refused(asKey, 'signal_run', { run: second.run, name: '' }, 'invalid_parameters', 'name');
  await refused(asKey, 'cancel_run', { run: second.run, more: 1 }, 'invalid_parameters', 'more');
  const asOther = await connect({ key: otherApp.secretKey });
  for (const name of ['signal_run', 'cancel_run', 'retry_run']) {
    const args = { run: third.run, ...(name === 'signal_run' ? { name: 'go' } : {}) };
    await refused(asOther, name, args, 'not_found');
    await assert.rejects(asMember.callTool({ name, arguments: args }), /does not exist/);
  }
});

test('a tool called twice with the same Idempotency-Key takes effect once', async () => {
  const callOnce = (key: string, name: string, args: Structured) =>
    api<string>('POST', '/mcp', {
      token: member.token,
      headers: { accept: 'application/json, text/event-stream', 'idempotency-key': key },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
    });
  const increment = { key: 'tries', by: 5 };
  for (const key of ['one', 'one', 'two', 'two']) {
    const called = await callOnce(key, 'kv_increment', increment);
    assert.equal(called.status, 200, called.text);
    assert.match(called.text, new RegExp(`"value":"${key === 'one' ? 5 : 10}"`));
  }
  const other = await callOnce('one', 'kv_increment', { key: 'tries', by: 6 });
  assert.match(other.text, /idempotency_key_reused/);
  assert.deepEqual(await ok(asMember, 'kv_get', { key: 'tries' }).then(({ value }) => value), '10');
});

test('files and texts of megabytes arrive byte for byte, and an invalid one is refused on its argument', async () => {
  const bytes = Buffer.alloc(2_000_003, 'bytes of a file ');
  const text = 'Zeile „eins“ 🪨 \\ "zwei"\n'.repeat(60_000);
  const stored = async (file: unknown) => {
    const { body } = await api<{ url: string }>('GET', `/api/v1/files/${String(file)}`, { key: app.secretKey });
    return Buffer.from(await (await fetch(body.url)).arrayBuffer());
  };
  const first = await ok(asKey, 'upload_file', { filename: 'a.bin', data: bytes.toString('base64') });
  assert.ok((await stored(first.file)).equals(bytes));
  const second = await ok(asKey, 'upload_file', { filename: 'a.txt', text });
  assert.equal((await stored(second.file)).toString(), text);
  const wrong = `${bytes.toString('base64').slice(0, -4)}a_-b`;
  await refused(asKey, 'upload_file', { filename: 'a.bin', data: wrong }, 'invalid_parameters', 'data');
  await refused(asKey, 'upload_file', { filename: 'a.txt', text: `${text}\0` }, 'invalid_parameters', 'text');
});
