import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { readAutomationFile } from '../../../src/automations/definitions/source-file.ts';
import { AutomationsClient, type Run } from '../../support/automations.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

/* The examples of docs/automations.md, each installed as it stands there and run. */

const text = readFileSync(fileURLToPath(new URL('../../../docs/automations.md', import.meta.url)), 'utf8');
const examples = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map((match) => match[1] ?? '');

let server: TestServer;
let world: TestTenants;
let client: AutomationsClient;
let outside: Server;
let outsideUrl: string;
const received: { path: string; authorization: string | undefined; idempotencyKey: unknown; body: unknown }[] = [];

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
  world = await server.provision.world();
  client = new AutomationsClient(server, world.app);
  outside = createServer(async (request: IncomingMessage, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    received.push({
      path: request.url ?? '',
      authorization: request.headers.authorization,
      idempotencyKey: request.headers['idempotency-key'],
      body: body === '' ? undefined : JSON.parse(body),
    });
    response.statusCode = request.url === '/missing' ? 404 : 200;
    response.end('{"ok":true}');
  });
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve));
  outsideUrl = `http://127.0.0.1:${(outside.address() as AddressInfo).port}`;
});
after(async () => {
  outside.close();
  await server.close();
});

/** The example with this lookup key, with ids that exist here. */
async function install(lookupKey: string, replace: Record<string, string> = {}): Promise<string> {
  let example = examples.find((one) => one.includes(`lookup_key: ${lookupKey}\n`));
  assert.ok(example, lookupKey);
  for (const [from, to] of Object.entries(replace)) example = example.replaceAll(from, to);
  return (await client.createAutomation(parse(example) as Record<string, unknown>)).id;
}

async function source(type: string, payload: Record<string, unknown> = {}): Promise<string> {
  const answer = await client.call<{ id: string }>('POST', '/knowledge_sources', { type, org: world.org.id, payload });
  assert.equal(answer.status, 201, answer.text);
  return answer.body.id;
}

async function upload(filename: string): Promise<string> {
  const data = Buffer.from('Otters hold hands while they sleep.').toString('base64');
  const body = { filename, content_type: 'text/plain', data, org: world.org.id };
  const answer = await client.call<{ id: string }>('POST', '/files', body);
  assert.equal(answer.status, 201, answer.text);
  return answer.body.id;
}

async function runsOf(automation: string): Promise<Run[]> {
  return (await client.call<{ data: Run[] }>('GET', `/automations/${automation}/runs`)).body.data;
}

async function firstRun(automation: string): Promise<Run> {
  for (;;) {
    const [run] = await runsOf(automation);
    if (run) return client.waitForEnd(run.id);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

test('there are five examples, and each is valid unchanged', () => {
  assert.equal(examples.length, 5);
  for (const example of examples) assert.deepEqual(readAutomationFile(example).problems, []);
});

test('the nightly refresh pulls its source again', async () => {
  const file = await upload('otters.txt');
  const id = await install('nightly-refresh', { cso_YOUR_SOURCE: await source('file/document', { file }) });
  await server.db`update automations set next_tick_at = now() - interval '1 hour' where lookup_key = 'nightly-refresh'`;
  const run = await firstRun(id);
  assert.deepEqual([run.status, run.result], ['completed', { documents: 1 }]);
});

test('an upload is extracted, indexed and announced', async () => {
  await client.call('PUT', '/secrets/WEBHOOK_URL', { value: `${outsideUrl}/hook` });
  await client.call('PUT', '/secrets/WEBHOOK_TOKEN', { value: 'swordfish' });
  const knowledge = await source('knowledge/documents');
  const id = await install('index-uploads', { cso_YOUR_SOURCE: knowledge });
  const file = await upload('sleeping-otters.txt');
  const run = await firstRun(id);
  assert.deepEqual([run.status, run.result], ['completed', { announced: 200 }], JSON.stringify(run));
  assert.deepEqual(run.payload, {
    file,
    filename: 'sleeping-otters.txt',
    content_type: 'text/plain',
    size: 35,
    org: world.org.id,
  });
  const [hook] = received.filter((one) => one.path === '/hook');
  assert.equal(hook?.authorization, 'Bearer swordfish');
  assert.match(String(hook?.idempotencyKey), /^cmd_/);
  assert.match(JSON.stringify(hook?.body), /"document":"cdo_/);
  assert.doesNotMatch(JSON.stringify(await client.journal(run.id)), /swordfish/);
  const found = await client.call('POST', `/knowledge_sources/${knowledge}/search`, { query: 'otters' });
  assert.match(found.text, /Otters hold hands/);
  await client.call('POST', `/automations/${id}/pause`);
});

test('a publication waits for its approval', async () => {
  const id = await install('approval');
  const { id: editor, token } = world.member;
  const decide = async (ok: boolean) => {
    const { id: run } = await client.invoke(id, { payload: { title: 'News', editor } });
    await client.waitUntilWaiting(run);
    const { body } = await server.api<{ data: { id: string }[] }>('GET', '/api/v1/approvals', { token });
    const path = `/api/v1/approvals/${body.data[0]?.id}/answer`;
    const answered = await server.api('POST', path, { token, body: { data: { ok } } });
    assert.equal(answered.status, 200, answered.text);
    return client.waitForEnd(run);
  };
  assert.deepEqual((await decide(true)).result, { published: 'News', by: editor });
  const message = `${editor} refused News`;
  assert.deepEqual((await decide(false)).error, { code: 'refused', message, node_id: 'refused' });
});

test('a list of addresses is checked concurrently', async () => {
  const id = await install('check-addresses');
  const urls = ['/a', '/b', '/missing', '/c'].map((path) => `${outsideUrl}${path}`);
  const run = await client.waitForEnd((await client.invoke(id, { payload: { urls } })).id);
  assert.deepEqual(run.result, { reached: 3, missing: 1 }, JSON.stringify(run));
});

test('the program of the last example executes a run', async () => {
  const id = await install('render');
  const program = /```js\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
  assert.ok(program.trim().split('\n').length <= 40);
  const worker = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env: { PATH: process.env.PATH, QUARRY_URL: server.baseUrl, QUARRY_KEY: world.app.secretKey },
    stdio: 'inherit',
  });
  try {
    const run = await client.waitForEnd((await client.invoke(id, { payload: { seconds: 2 } })).id);
    assert.deepEqual(run.result, { frames: 48 });
  } finally {
    worker.kill();
  }
});
