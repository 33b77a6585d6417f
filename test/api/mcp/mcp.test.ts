import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { htmlPage, responses, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import type { TestUser } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

/*
 * The MCP endpoint by the official client, in both kinds of the protocol that it speaks.
 */

const server = await startTestServer({
  env: { QUARRY_FETCH_ALLOW: '127.0.0.1', QUARRY_CORS_ORIGINS: '*,https://tools.example' },
});
const { api, baseUrl, provision } = server;
const world = await provision.world();
const { app, org, member, admin, otherApp, stranger } = world;
const site = await startSite({
  '/': htmlPage('Start', ['/a']),
  '/a': htmlPage('Page A'),
  '/long': longPage(),
  '/slow': responses.silent,
});
const clients: Client[] = [];
after(async () => {
  for (const client of clients) await client.close();
  await site.close();
  await server.close();
});

type Credential = { key?: string; token?: string; headers?: Record<string, string> };
type Structured = Record<string, unknown>;

function headersOf({ key, token, headers }: Credential): Record<string, string> {
  return {
    ...(key === undefined ? {} : { 'x-api-key': key }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...headers,
  };
}

async function connect(credential: Credential, versions: 'modern' | 'legacy' = 'modern'): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    versions === 'legacy' ? { supportedProtocolVersions: ['2025-06-18'] } : { versionNegotiation: { mode: 'auto' } },
  );
  const requestInit = { headers: headersOf(credential) };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`), { requestInit }));
  clients.push(client);
  return client;
}

type Called = { data: Structured; text: string; error: ErrorBody['error'] | undefined };

async function call(client: Client, name: string, args: Structured = {}): Promise<Called> {
  const result = await client.callTool({ name, arguments: args });
  const texts = (result.content as { type: string; text: string }[]).map(({ text }) => text);
  return {
    data: (result.structuredContent ?? {}) as Structured,
    text: texts[0] ?? '',
    error: result.isError ? (JSON.parse(texts[1] ?? '{}') as ErrorBody).error : undefined,
  };
}

async function ok(client: Client, name: string, args: Structured = {}): Promise<Structured & { text: string }> {
  const { data, text, error } = await call(client, name, args);
  assert.equal(error, undefined, `${name}: ${text}`);
  return { ...data, text };
}

async function refused(client: Client, name: string, args: Structured, code: string, field?: string): Promise<void> {
  const { error, text } = await call(client, name, args);
  assert.equal(error?.code, code, `${name}: ${text}`);
  if (field === undefined) return;
  assert.ok(
    error.fields.some((each) => each.field === field),
    `${name}: ${text}`,
  );
  assert.match(text, new RegExp(`^(?:- )?${field}: `, 'm'));
}

function longPage(): string {
  const paragraph = (at: number) =>
    `<p>Sentence number ${at} stands on this page, and it tells something of its own — déjà vu.</p>`;
  return `<!doctype html><title>Long</title><main><h1>Long</h1>${Array.from({ length: 600 }, (_, at) => paragraph(at)).join('')}</main>`;
}

let asKey: Client;
let asMember: Client;
let source: string;
let document: string;
before(async () => {
  asKey = await connect({ key: app.secretKey });
  asMember = await connect({ token: member.token });
  const knowledge = knowledgeOf(server, { key: app.secretKey });
  source = await knowledge.createSource({ user: member.id });
  const lines = Array.from({ length: 50 }, (_, at) => `Line ${at + 1} speaks of penguins.`).join('\n\n');
  document = await knowledge.push(source, lines, { title: 'Penguins', metadata: { year: 2026 } });
});

test('both versions of the protocol are supported, with the same tools', async () => {
  const old = await connect({ key: app.secretKey }, 'legacy');
  assert.deepEqual(
    [asKey, old].map((client) => client.getNegotiatedProtocolVersion()),
    ['2026-07-28', '2025-06-18'],
  );
  const modern = await asKey.listTools();
  const legacy = await old.listTools();
  const names = modern.tools.map(({ name }) => name).sort();
  assert.deepEqual(legacy.tools.map(({ name }) => name).sort(), names);
  assert.deepEqual(names, [
    ...['answer', 'cancel_run', 'create_upload_url', 'emit_event', 'extract_file', 'extract_url'],
    ...['ingest', 'invoke_automation', 'kv_batch', 'kv_delete', 'kv_get', 'kv_increment', 'kv_list', 'kv_put'],
    ...[
      'list_automations',
      'list_documents',
      'list_files',
      'list_invocable_automations',
      'list_knowledge_sources',
      'list_uploads',
      'read_document',
      'read_extraction',
      'read_file',
    ],
    ...['read_run', 'retry_run', 'search_knowledge', 'signal_run', 'upload_file'],
  ]);
  for (const tool of modern.tools) {
    assert.equal(tool.inputSchema.additionalProperties, false, tool.name);
    assert.equal(tool.outputSchema?.type, 'object', tool.name);
    assert.ok((tool.description?.length ?? 0) > 20, tool.name);
  }
  assert.match(asKey.getInstructions() ?? '', /Search before you read/);
});

test('an old client also calls tools and gets progress', async () => {
  const client = await connect({ token: member.token }, 'legacy');
  assert.match((await ok(client, 'search_knowledge', { source, query: 'penguins' })).text, /penguins/);
  const told: string[] = [];
  const progressed: number[] = [];
  const result = await client.callTool(
    { name: 'extract_url', arguments: { url: `${site.origin}/slow`, wait_seconds: 4 } },
    {
      onprogress: ({ message, progress }) => {
        told.push(message ?? '');
        progressed.push(progress);
      },
    },
  );
  assert.equal((result.structuredContent as Structured).state, 'running');
  assert.ok(told.length > 0 && told.every((words) => words === '0 of 1 pages read, 0 failed'), told.join());
  assert.deepEqual(
    progressed,
    [...new Set(progressed)].sort((a, b) => a - b),
    'each further on than the one before',
  );
  assert.ok(progressed.every((share) => share < 1));
});

test('a missing or wrong credential gets the API’s own 401', async () => {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  for (const credential of [{}, { key: app.publishableKey }, { key: 'sk_wrongwrong' }, { token: 'garbage-garbage' }]) {
    const answer = await api<ErrorBody>('POST', '/mcp', { ...credential, body });
    assert.equal(answer.status, 401);
    assert.equal(answer.body.error.type, 'authentication_error');
    assert.ok(answer.headers.get('x-request-id'));
    await assert.rejects(connect(credential));
  }
  const developer = await api<ErrorBody>('POST', '/mcp', { token: app.developerToken, body });
  assert.equal(developer.body.error.code, 'app_scope_required');
  const scoped = await connect({ token: app.developerToken, headers: { 'x-app': app.app.id } });
  await ok(scoped, 'list_automations');
});

test('pages of other origins are refused, also those that resolve to this machine’s address', async () => {
  const send = (origin: string, host?: string) =>
    api<ErrorBody>('POST', '/mcp', {
      key: app.secretKey,
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      headers: { origin, accept: 'application/json, text/event-stream', ...(host === undefined ? {} : { host }) },
    });
  for (const origin of ['https://evil.example', 'null', `${baseUrl}.evil.example`]) {
    const answer = await send(origin);
    assert.deepEqual([answer.status, answer.body.error.code], [403, 'forbidden'], origin);
  }
  assert.equal((await send('http://evil.example:8080', 'evil.example:8080')).status, 403);
  for (const origin of [baseUrl, 'https://tools.example']) assert.equal((await send(origin)).status, 200, origin);
});

test('there are no sessions and no streams: other methods are 405', async () => {
  for (const method of ['GET', 'DELETE']) {
    const answer = await api<ErrorBody>(method, '/mcp', { key: app.secretKey });
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'POST']);
  }
});

test('knowledge is listed, searched and read by ranges', async () => {
  const sources = await ok(asMember, 'list_knowledge_sources');
  assert.deepEqual(
    (sources.sources as Structured[]).map(({ id, user }) => [id, user]),
    [[source, member.id]],
  );
  const documents = await ok(asMember, 'list_documents', { source, title: 'peng' });
  assert.equal((documents.documents as Structured[])[0]?.id, document);
  const found = await ok(asMember, 'search_knowledge', {
    source,
    query: 'penguins',
    max_results: 3,
    filter: { year: 2026 },
  });
  const [passage] = found.passages as Structured[];
  assert.equal(passage?.document, document);
  assert.match(found.text, /^\[1\] Penguins \(cdo_\w+, lines \d+-\d+\)\n/);
  const none = await ok(asMember, 'search_knowledge', { source, query: 'penguins', filter: { year: 1999 } });
  assert.equal(none.text, 'No results.');

  const first = await ok(asMember, 'read_document', { document, limit: 3 });
  assert.deepEqual([first.start_line, first.end_line, first.next_offset], [1, 3, 4]);
  assert.match(
    first.text,
    /^Line 1 speaks[\s\S]*\[There is more: call read_document with unit lines and offset 4\.\]$/,
  );
  // Reading on and on gives the whole, in lines as in bytes.
  for (const [unit, limit] of [
    ['lines', 7],
    ['bytes', 100],
  ] as const) {
    let whole = '';
    for (let offset: unknown = undefined; ; ) {
      const part = await ok(asMember, 'read_document', {
        document,
        unit,
        limit,
        ...(offset === undefined ? {} : { offset }),
      });
      whole += part.content;
      offset = part.next_offset;
      if (offset === undefined) break;
    }
    assert.equal(whole.trim().split('\n\n').length, 50);
  }
});

test('a document of one endless line is bounded, and the response says how to continue', async () => {
  const knowledge = knowledgeOf(server, { key: app.secretKey });
  const long = await knowledge.push(source, `${'word '.repeat(40_000)}end`, { title: 'Endless' });
  const line = await ok(asMember, 'read_document', { document: long });
  assert.equal(line.line_cut, true);
  assert.ok(String(line.content).length <= 65_536);
  const rest = await ok(asMember, 'read_document', { document: long, unit: 'bytes', offset: 199_990 });
  assert.match(String(rest.content), /end/);
});

test('a page is extracted with progress, and a long one is continued from where it stopped', async () => {
  const told: number[] = [];
  const result = await asMember.callTool(
    { name: 'extract_url', arguments: { url: `${site.origin}/long` } },
    { onprogress: ({ progress }) => told.push(progress) },
  );
  const data = result.structuredContent as Structured;
  assert.deepEqual([data.state, data.output], ['done', 0]);
  let whole = String(data.content);
  for (let offset = data.next_offset; offset !== undefined; ) {
    const part = await ok(asMember, 'read_extraction', { extraction: data.extraction, offset, limit: 9_999 });
    whole += part.content;
    offset = part.next_offset;
  }
  assert.equal(Buffer.byteLength(whole), data.size);
  assert.match(whole, /Sentence number 599 .* déjà vu\./);
  assert.doesNotMatch(whole, /\u{fffd}/u);
});

test('a site numbers its pages, and a job that continues returns its id', async () => {
  const whole = await ok(asKey, 'extract_url', { url: `${site.origin}/`, mode: 'site', max_pages: 5 });
  const outputs = whole.outputs as Structured[];
  assert.deepEqual(
    outputs.map(({ number }) => number),
    [0, 1],
  );
  const second = await ok(asKey, 'read_extraction', { extraction: whole.extraction, output: 1 });
  assert.match(String(second.content), /This is the page called/);
  const started = await ok(asKey, 'extract_url', { url: `${site.origin}/slow`, wait_seconds: 0 });
  assert.equal(started.state, 'running');
  assert.match(started.text, new RegExp(`Call read_extraction with extraction ${started.extraction} to check again`));
  assert.equal((await ok(asKey, 'read_extraction', { extraction: started.extraction })).state, 'running');
});

test('a document is extracted from bytes or from an existing file', async () => {
  const data = Buffer.from('<h1>Report</h1><p>All is well.</p>').toString('base64');
  const made = await ok(asMember, 'extract_file', { data, filename: 'report.html', content_type: 'text/html' });
  assert.match(made.text, /# Report\n+All is well\./);
  const file = await api<{ id: string }>('POST', '/api/v1/files', {
    token: member.token,
    body: { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from('Plain.').toString('base64') },
  });
  assert.match((await ok(asMember, 'extract_file', { file: file.body.id })).text, /Plain\./);
  await refused(
    asMember,
    'extract_file',
    { data: Buffer.from('PK\u0003\u0004junk').toString('base64'), filename: 'x.docx' },
    'extraction_failed',
  );
});

test('entries are put, listed, read in parts and deleted', async () => {
  const long = `${'é'.repeat(30_000)}😀end`;
  await ok(asMember, 'kv_put', { key: 'a/b c', value: long });
  const entry = await ok(asMember, 'kv_get', { key: 'a/b c' });
  assert.equal(entry.next_offset, 16_384);
  let whole = '';
  for (let offset: unknown = 0; offset !== undefined; ) {
    const part: Structured = await ok(asMember, 'kv_get', { key: 'a/b c', offset });
    whole += part.value;
    offset = part.next_offset;
  }
  assert.equal(whole, long);
  const listed = await ok(asMember, 'kv_list', { prefix: 'a/' });
  const [only] = listed.entries as Structured[];
  assert.deepEqual(
    [only?.key, String(only?.value).length, only?.value_cut, listed.total_entries],
    ['a/b c', 200, true, 1],
  );
  assert.equal((await ok(asKey, 'kv_list', { user: member.id, prefix: 'a/' })).total_entries, 1);
  await ok(asMember, 'kv_delete', { key: 'a/b c' });
  await refused(asMember, 'kv_get', { key: 'a/b c' }, 'not_found');
  await refused(asKey, 'kv_get', { key: 'x' }, 'user_required');
});

test('automations are listed, invoked and their runs read', async () => {
  const make = async (key: string, nodes: Structured[]) => {
    const made = await api<{ id: string }>('POST', '/api/v1/automations', {
      key: app.secretKey,
      body: {
        name: key,
        lookup_key: key,
        type: 'invoked',
        workflow: { kind: 'WorkflowGraph', version: 1, start_node: 'a', nodes },
      },
    });
    assert.equal(made.status, 201, made.text);
    await api('POST', `/api/v1/automations/${made.body.id}/activate`, { key: app.secretKey });
  };
  await make('greet', [{ id: 'a', kind: 'complete', result: 'Hello {{$.name}}' }]);
  await make('wait', [
    { id: 'a', kind: 'wait_for_signal', name: 'go', on_success: 'b' },
    { id: 'b', kind: 'complete', result: 1 },
  ]);
  const listed = await ok(asKey, 'list_automations', { type: 'invoked' });
  assert.deepEqual(
    (listed.automations as Structured[]).map(({ lookup_key }) => lookup_key),
    ['wait', 'greet'],
  );
  const done = await ok(asMember, 'invoke_automation', { automation: 'greet', payload: { name: 'Ada' } });
  assert.deepEqual([done.status, done.result], ['completed', 'Hello Ada']);
  const read = await ok(asMember, 'read_run', { run: done.run });
  assert.equal(read.result, 'Hello Ada');
  assert.ok((read.journal as Structured[]).some(({ type, node }) => type === 'node_completed' && node === 'a'));
  const after = await ok(asMember, 'read_run', { run: done.run, after_cursor: read.resume_cursor });
  assert.deepEqual(after.journal, []);
  const waiting = await ok(asMember, 'invoke_automation', { automation: 'wait', wait_seconds: 1 });
  const statusOf = async () => (await ok(asMember, 'read_run', { run: waiting.run })).status;
  let { status } = waiting;
  while (status === 'pending') status = await statusOf();
  assert.equal(status, 'running');
  await assert.rejects(asMember.callTool({ name: 'list_automations', arguments: {} }), /does not exist/);
});

test('two tenants see nothing of each other through any tool', async () => {
  const extraction = await ok(asMember, 'extract_file', { data: 'aGVsbG8=', filename: 'a.txt' });
  const run = await ok(asMember, 'invoke_automation', { automation: 'greet', payload: { name: 'x' } });
  const file = await api<{ id: string }>('POST', '/api/v1/files', {
    token: member.token,
    body: { filename: 'a.txt', content_type: 'text/plain', data: 'aGVsbG8=' },
  });
  await ok(asMember, 'kv_put', { key: 'secret', value: 'mine' });
  for (const other of [await connect({ key: otherApp.secretKey }), await connect({ token: stranger.token })]) {
    for (const [name, member] of [
      ['list_knowledge_sources', 'sources'],
      ['list_documents', 'documents'],
      ['kv_list', 'entries'],
    ] as const)
      assert.deepEqual((await ok(other, name))[member], [], name);
    await refused(other, 'search_knowledge', { source, query: 'penguins' }, 'not_found');
    await refused(other, 'read_document', { document }, 'not_found');
    await refused(other, 'read_extraction', { extraction: extraction.extraction }, 'not_found');
    await refused(other, 'extract_file', { file: file.body.id }, 'invalid_parameters', 'file');
    await refused(other, 'invoke_automation', { automation: 'greet' }, 'not_found');
    await refused(other, 'read_run', { run: run.run }, 'not_found');
  }
  const otherKey = await connect({ key: otherApp.secretKey });
  assert.deepEqual((await ok(otherKey, 'list_automations')).automations, []);
  for (const name of ['kv_get', 'kv_delete'])
    await refused(otherKey, name, { key: 'secret', user: member.id }, 'not_found');
  await refused(otherKey, 'kv_put', { key: 'secret', value: 'x', user: member.id }, 'not_found');
  assert.equal((await ok(asMember, 'kv_get', { key: 'secret' })).value, 'mine');
});

test('an end user sees only their own resources, even when they name another user', async () => {
  const asAdmin: Client = await connect({ token: (admin as TestUser).token });
  const loner = await connect({ token: world.loner.token });
  assert.deepEqual((await ok(loner, 'list_knowledge_sources', { org: org.id })).sources, []);
  await refused(loner, 'read_document', { document }, 'not_found');
  await ok(asMember, 'kv_put', { key: 'own', value: 'mine' });
  await refused(asAdmin, 'kv_get', { key: 'own', user: member.id }, 'not_found');
  await ok(asAdmin, 'kv_put', { key: 'own', value: 'theirs', user: member.id });
  assert.equal((await ok(asMember, 'kv_get', { key: 'own' })).value, 'mine');
});

test('bad input names the member, for every tool', async () => {
  const cases: [string, Structured, string][] = [
    ['search_knowledge', { source: 'cso_x' }, 'query'],
    ['search_knowledge', { query: '', source: 'cso_x' }, 'query'],
    ['list_knowledge_sources', { page: 0 }, 'page'],
    ['list_documents', { source: 'nonsense' }, 'source'],
    ['read_document', { document: 'cdo_x', unit: 'pages' }, 'unit'],
    ['extract_url', { url: 'http://10.0.0.1/' }, 'url'],
    ['extract_url', { url: `${site.origin}/`, mode: 'all' }, 'mode'],
    ['extract_file', {}, 'file'],
    ['extract_file', { data: 'aGVsbG8=' }, 'filename'],
    ['extract_file', { data: '!!!', filename: 'a.txt' }, 'data'],
    ['read_extraction', { extraction: 'ext_x', limit: 0 }, 'limit'],
    ['kv_get', { key: '' }, 'key'],
    ['kv_get', { key: '..' }, 'key'],
    ['kv_put', { key: 'x', value: 1 }, 'value'],
    ['kv_list', { page: 'one' }, 'page'],
    ['kv_delete', { key: 'x', more: true }, 'more'],
    ['list_automations', { type: 'any' }, 'type'],
    ['invoke_automation', { automation: 'greet', payload: [] }, 'payload'],
    ['read_run', { run: 1 }, 'run'],
  ];
  for (const [name, args, field] of cases) await refused(asKey, name, args, 'invalid_parameters', field);
  await refused(asKey, 'read_document', { document: '../../users/me' }, 'not_found');
  await refused(asKey, 'kv_put', { key: 'x\u0000', value: 'v', user: member.id }, 'invalid_parameters', 'key');
  await assert.rejects(asKey.callTool({ name: 'drop_everything', arguments: {} }), /does not exist/);
});

test('many messages in one request are bounded', async () => {
  const headers = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-03-26' };
  const batch = (count: number) =>
    Array.from({ length: count }, (_, id) => ({ jsonrpc: '2.0', id, method: 'tools/list' }));
  const few = await api('POST', '/mcp', { key: app.secretKey, body: batch(2), headers });
  assert.equal(few.text.match(/search_knowledge/g)?.length, 4, 'each names the tool twice');
  const many = await api<ErrorBody>('POST', '/mcp', { key: app.secretKey, body: batch(21), headers });
  assert.deepEqual([many.status, many.body.error.fields[0]?.field], [422, 'body']);
});

test('input that violates the protocol is refused without harm', async () => {
  const headers = { accept: 'application/json, text/event-stream' };
  for (const body of [{}, [], { jsonrpc: '2.0' }, 'null', '{', { jsonrpc: '2.0', id: 1, method: 'nothing/here' }]) {
    const answer = await api('POST', '/mcp', { key: app.secretKey, body, headers });
    assert.ok(answer.status >= 200 && answer.status < 500, `${JSON.stringify(body)}: ${answer.status} ${answer.text}`);
  }
});

test('a stopping server returns partial results to waiting tools', async () => {
  const other = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
  const tenant = await other.provision.app();
  const client = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: { 'x-api-key': tenant.secretKey } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${other.baseUrl}/mcp`), { requestInit }));
  const told = Promise.withResolvers<void>();
  const waiting = client.callTool(
    { name: 'extract_url', arguments: { url: `${site.origin}/slow`, wait_seconds: 300 } },
    { onprogress: () => told.resolve() },
  );
  await told.promise;
  const closed = other.close();
  assert.equal(((await waiting).structuredContent as Structured).state, 'running');
  await client.close();
  await closed;
});

test('tools are limited and audited like the requests that they send', async () => {
  const other = await startTestServer({ env: { QUARRY_RATE_SEARCH: '1' } });
  const tenant = await other.provision.app();
  const user = await other.provision.user(tenant);
  const client = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: { 'x-api-key': tenant.secretKey } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${other.baseUrl}/mcp`), { requestInit }));
  const knowledge = await knowledgeOf(other, { key: tenant.secretKey }).createSource({ user: user.id });
  const codes: (string | undefined)[] = [];
  for (let at = 0; at < 3; at++)
    codes.push((await call(client, 'search_knowledge', { source: knowledge, query: 'x' })).error?.code);
  assert.ok(codes.includes('rate_limited'), codes.join());
  await ok(client, 'extract_file', { data: 'aGVsbG8=', filename: 'a.txt' });
  await client.close();
  const actions = async () => {
    const audit = await other.api<{ data: { action: string }[] }>('GET', '/api/v1/audit', { key: tenant.secretKey });
    return audit.body.data.map(({ action }) => action);
  };
  // Entries of data come with others, a moment after the answer.
  let found = await actions();
  for (let tries = 0; tries < 1_000 && !found.includes('createExtraction'); tries++) {
    await new Promise((wake) => setTimeout(wake, 50));
    found = await actions();
  }
  assert.ok(found.includes('createExtraction') && found.includes('createFile'), found.join());
  assert.ok(!found.includes('callMcp'));
  await other.close();
});
