import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { runQuarry } from '../../support/command.ts';
import { type TestExtraction, waitForExtraction } from '../../support/extractions.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';

/* Where structured extraction can be reached from: the command line, MCP and workflows. */

const model = await startLanguageModel();
const server = await startTestServer({
  env: { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'small', QUARRY_FETCH_ALLOW: '127.0.0.1' },
  logLevel: 'fatal',
});
const site = await startSite({ '/': htmlPage('Start', ['/a']), '/a': htmlPage('Page A') });
const directory = mkdtempSync(join(tmpdir(), 'quarry-structured-'));
const app = await server.provision.app();
after(async () => {
  await site.close();
  await server.close();
  await model.close();
  rmSync(directory, { recursive: true, force: true });
});
beforeEach(() => {
  model.requests.length = 0;
  model.script = () => '{"name":"Bolt","price":3.5}';
});

const schema = {
  type: 'object',
  properties: { name: { type: 'string' }, price: { type: 'number' } },
  required: ['name', 'price'],
};
const text = '| Bolt | 3,50 |\n';

function write(name: string, content: string): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

const quarry = (...args: string[]) =>
  runQuarry(args, {
    env: { QUARRY_DATA_DIR: join(directory, 'none'), QUARRY_API_URL: server.baseUrl, QUARRY_API_KEY: app.secretKey },
  });

test('quarry extract --schema prints the data of a document, a line for each page of a site, or writes files', async () => {
  const schemaFile = write('schema.json', JSON.stringify(schema));
  const file = write('part.md', text);
  const ran = await quarry('extract', file, '--schema', schemaFile, '--instructions', 'One part.');
  assert.deepEqual([ran.code, JSON.parse(ran.stdout)], [0, { name: 'Bolt', price: 3.5 }], ran.stderr);
  assert.match(model.requests[0]?.messages[0]?.content ?? '', /One part\./);

  const pages = await quarry('extract', `${site.origin}/`, '--site', '--schema', schemaFile);
  const lines = pages.stdout.trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    ['/', '/a'].map((path) => ({ source_url: `${site.origin}${path}`, data: { name: 'Bolt', price: 3.5 } })),
  );

  const out = join(directory, 'out');
  assert.equal((await quarry('extract', file, '--schema', schemaFile, '--out', out)).code, 0);
  assert.equal(readFileSync(join(out, 'part.md'), 'utf8'), text);
  const written = JSON.parse(readFileSync(join(out, 'part.json'), 'utf8')) as { spans: unknown[] };
  assert.equal(written.spans.length, 2);

  model.script = () => 'no';
  const failed = await quarry('extract', file, '--schema', schemaFile);
  assert.deepEqual([failed.code, failed.stdout], [1, '']);
  assert.match(failed.stderr, /no valid output/);
  const wrong = [
    await quarry('extract', file, '--instructions', 'x'),
    await quarry('extract', file, '--schema', write('bad.json', '{')),
    await quarry('extract', file, '--schema', join(directory, 'missing.json')),
  ];
  assert.deepEqual(
    wrong.map(({ code }) => code),
    [2, 2, 2],
  );
});

test('extract_file and extract_url of MCP take a schema and return the data', async () => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  const requestInit = { headers: { 'x-api-key': app.secretKey } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.baseUrl}/mcp`), { requestInit }));
  try {
    const data = Buffer.from(text).toString('base64');
    for (const [name, from] of [
      ['extract_file', { data, filename: 'part.md' }],
      ['extract_url', { url: `${site.origin}/` }],
    ] as const) {
      const result = await client.callTool({ name, arguments: { ...from, schema, instructions: 'One part.' } });
      const { structuredContent, content } = result as { structuredContent: Record<string, unknown>; content: unknown };
      assert.deepEqual([structuredContent.state, structuredContent.data], ['done', { name: 'Bolt', price: 3.5 }]);
      assert.match(JSON.stringify(content), /Data:/);
    }
    model.script = () => 'no';
    const failed = await client.callTool({ name: 'extract_file', arguments: { data, filename: 'part.md', schema } });
    assert.match(JSON.stringify(failed.content), /Output 0 has no data: The language model wrote no valid output/);
  } finally {
    await client.close();
  }
});

test('an extract node waits for the data, and fails with its reason', async () => {
  const client = new AutomationsClient(server, app);
  const file = await server.api<{ id: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'part.md', content_type: 'text/markdown', data: Buffer.from(text).toString('base64') },
  });
  const extract = {
    ...{ id: 'x', kind: 'extract', file: '{{$.file}}', destination_kind: 'storage', schema },
    ...{ instructions: 'Take {{$.what}}.', on_success: 'end' },
  };
  const graph = graphOf(extract, { id: 'end', kind: 'complete', result: '{{$nodes.x.outputs[0]}}' });
  const run = await client.runGraph(graph, { file: file.body.id, what: 'parts' });
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  const output = run.result as TestExtraction['outputs'][number];
  assert.deepEqual([output.data, output.spans?.length], [{ name: 'Bolt', price: 3.5 }, 2]);
  assert.match(model.requests[0]?.messages[0]?.content ?? '', /Take parts\./);
  model.script = () => 'no';
  const failed = await client.runGraph(graph, { file: file.body.id, what: 'parts' });
  assert.deepEqual([failed.status, failed.error?.code], ['failed', 'invalid_output']);
});

test('a mail and its attachment each have data: the first in the response, both in files', async () => {
  const mail = [
    ...['From: a@example.com', 'Subject: Parts', 'MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary=b', ''],
    ...['--b', 'Content-Type: text/plain', '', 'A Bolt for 3.5.', '--b', 'Content-Type: text/plain; name=list.txt'],
    ...['Content-Disposition: attachment; filename=list.txt', '', 'Bolt 3.5', '--b--', ''],
  ].join('\r\n');
  const key = app.secretKey;
  const body = { filename: 'mail.eml', content_type: 'message/rfc822', data: Buffer.from(mail).toString('base64') };
  const file = await server.api<{ id: string }>('POST', '/api/v1/files', { key, body });
  const created = await server.api<TestExtraction>('POST', '/api/v1/extractions', {
    key,
    body: { file: file.body.id, destination_kind: 'storage', schema },
  });
  const done = await waitForExtraction(server.baseUrl, key, created.body.id);
  assert.deepEqual([done.state, done.data_progress?.done], ['done', 2], JSON.stringify(done));
  assert.deepEqual(
    done.outputs.map(({ data, data_file: stored }) => [data !== undefined, stored !== undefined]),
    [
      [true, true],
      [false, true],
    ],
  );
});

test('another process takes over a structured extraction when this one stops, and repeats no completed request', async () => {
  const env = { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'small', QUARRY_LLM_CONTEXT_TOKENS: '4096' };
  const first = await startTestServer({ env, logLevel: 'fatal' });
  const by = await first.provision.app();
  const chapters = Array.from({ length: 6 }, (_, n) => `# Chapter ${n}\n\nWord${n}. ${'Filler text. '.repeat(120)}\n`);
  const held = Promise.withResolvers<void>();
  let stopping = true;
  model.script = ({ messages }) => {
    const words = [...(messages[1]?.content ?? '').matchAll(/Word\d/g)].map(([word]) => word);
    if (!stopping || !words.includes('Word3')) return JSON.stringify(words);
    return { respond: () => void held.resolve() };
  };
  const body = {
    filename: 'book.md',
    content_type: 'text/markdown',
    data: Buffer.from(chapters.join('\n')).toString('base64'),
  };
  const file = await first.api<{ id: string }>('POST', '/api/v1/files', { key: by.secretKey, body });
  const created = await first.api<TestExtraction>('POST', '/api/v1/extractions', {
    key: by.secretKey,
    body: { file: file.body.id, destination_kind: 'storage', schema: { type: 'array', items: { type: 'string' } } },
  });
  await held.promise;
  await first.services.stopWorkers();
  stopping = false;
  const second = await startTestServer({ env, beside: first, logLevel: 'fatal' });
  try {
    const path = `/api/v1/extractions/${created.body.id}`;
    const stream = await fetch(`${second.baseUrl}${path}/stream`, { headers: { 'x-api-key': by.secretKey } });
    await stream.text();
    const done = await second.api<TestExtraction>('GET', path, { key: by.secretKey });
    assert.deepEqual(
      done.body.outputs[0]?.data,
      chapters.map((_, n) => `Word${n}`),
    );
    const pieces = done.body.data_progress?.pieces ?? 0;
    assert.ok(model.requests.length <= pieces + 4, `${model.requests.length} requests for ${pieces} pieces`);
    // A request that was stopped before it was sent counts as well.
    assert.ok((done.body.usage?.requests ?? 0) >= model.requests.length);
  } finally {
    await second.close();
    await first.close();
  }
});
