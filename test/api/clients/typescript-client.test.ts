import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { z } from 'zod';
import {
  type ConnectOptions,
  Quarry,
  QuarryError,
  Session,
  type Tokens,
  verifyWebhook,
} from '../../../clients/typescript/src/index.ts';
import { openBreakingProxy } from '../../support/breaking-proxy.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer();
const directory = mkdtempSync(join(tmpdir(), 'quarry-client-'));
after(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});
const app = await server.provision.app();
const user = await server.provision.user(app);
const quarry = new Quarry({ baseUrl: server.baseUrl, key: app.secretKey });

/** A client whose `fetch` first shows each request to `see`, which may send another response or fail. */
function watched(
  see: (request: Request, at: number) => Response | undefined | Promise<Response | undefined>,
  more: Partial<ConnectOptions> = {},
) {
  let at = 0;
  const seen: typeof fetch = async (input, init) => (await see(new Request(input, init), at++)) ?? fetch(input, init);
  return new Quarry({ baseUrl: server.baseUrl, key: app.secretKey, fetch: seen, ...more });
}

const failed = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ error: { type: 'x', code, message: 'Later.', fields: [], details: {} } }, { status, headers });

test('resources are created, read, changed and deleted, and a list is awaited by page or read to its end', async () => {
  const made = await Promise.all([1, 2, 3].map((n) => quarry.agents.create({ name: `Agent ${n}`, user: user.id })));
  const page = await quarry.agents.list({ page_size: 2 });
  assert.deepEqual([page.data.length, page.total_entries, page.has_next], [2, 3, true]);
  const names: string[] = [];
  for await (const agent of quarry.agents.list({ page_size: 2 })) names.push(agent.name);
  assert.deepEqual(names.sort(), ['Agent 1', 'Agent 2', 'Agent 3']);
  const [first] = made;
  assert.ok(first);
  assert.equal((await quarry.agents.update(first.id, { name: 'Changed' })).name, 'Changed');
  assert.equal((await quarry.agents.get(first.id)).name, 'Changed');
  assert.equal(await quarry.agents.delete(first.id), undefined);
});

test('key-value entries keep their keys, whatever they contain, and are listed by cursor', async () => {
  const own = { user: user.id };
  for (const key of ['a/b', 'ä ?#', '...']) await quarry.kv.put(key, { value: key, ...own });
  assert.equal((await quarry.kv.get('a/b', own)).value, 'a/b');
  const keys: string[] = [];
  for await (const { key } of quarry.kv.entries({ limit: 1, ...own })) keys.push(key);
  assert.deepEqual(keys.sort(), ['...', 'a/b', 'ä ?#']);
  await quarry.kv.delete('a/b', own);
  // A URL cannot contain it: the request would go to another path.
  assert.throws(() => quarry.kv.put('..', { value: 'x', ...own }), TypeError);
  const wrongTag = { headers: { 'If-Match': '"other"' } };
  await assert.rejects(quarry.kv.put('a', { value: 'x', ...own }, wrongTag), {
    status: 412,
    code: 'precondition_failed',
  });
});

test('an error has the code, the fields and the request id of the response', async () => {
  const refused: unknown = await quarry.users
    .create({ email: 'no address', name: '' })
    .catch((error: unknown) => error);
  assert.ok(refused instanceof QuarryError);
  assert.deepEqual([refused.status, refused.code], [422, 'invalid_parameters']);
  assert.ok(refused.fields.some(({ field }) => field === 'email'));
  assert.ok(refused.requestId);
  await assert.rejects(quarry.agents.get('agt_0000000000000000000000'), { status: 404, code: 'not_found' });
  const elsewhere = new Quarry({ baseUrl: 'http://127.0.0.1:1', retries: 0 });
  await assert.rejects(elsewhere.server.health(), { code: 'unreachable', status: undefined });
  for (const baseUrl of ['', '127.0.0.1', undefined])
    assert.throws(() => new Quarry({ baseUrl: baseUrl as string }), { name: 'TypeError', message: /^baseUrl must be/ });
  const html = watched(() => new Response('<h1>Bad gateway</h1>', { status: 404 }));
  await assert.rejects(html.server.health(), { code: 'bad_response', status: 404 });
});

test('a request whose response was lost is repeated with the same Idempotency-Key, and takes effect once', async () => {
  const keys: (string | null)[] = [];
  const client = watched(async (request, at) => {
    keys.push(request.headers.get('idempotency-key'));
    if (at > 0) return undefined;
    await fetch(request);
    throw new TypeError('fetch failed');
  });
  const team = await client.teams.create({ name: 'Once' });
  assert.equal(keys.length, 2);
  assert.ok(keys[0] !== null && keys[0] === keys[1]);
  const same: string[] = [];
  for await (const { id, name } of quarry.teams.list()) if (name === 'Once') same.push(id);
  assert.deepEqual(same, [team.id]);
});

test('a request that may have taken effect is not repeated where a second time would change something', async () => {
  for (const [name, call] of [
    ['PATCH', (c: Quarry) => c.teams.update('team', { name: 'x' })],
    ['conditional', (c: Quarry) => c.kv.put('k', { value: 'v' }, { headers: { 'If-None-Match': '*' } })],
    ['credential', (c: Quarry) => c.apps.createKey({ name: 'k', type: 'secret' } as never)],
  ] as const) {
    let sent = 0;
    const client = watched((request) => {
      sent++;
      assert.equal(request.headers.get('idempotency-key'), null, name);
      throw new TypeError('fetch failed');
    });
    await assert.rejects(call(client), { code: 'unreachable' }, name);
    assert.equal(sent, 1, name);
  }
});

test('a refused request is repeated after Retry-After, and not at all when that is too long', async () => {
  const busy = watched((_, at) => (at < 2 ? failed(429, 'rate_limited', { 'retry-after': '0' }) : undefined));
  assert.equal((await busy.server.health()).status, 'ok');
  let sent = 0;
  const tomorrow = watched(() => {
    sent++;
    return failed(429, 'token_budget_exceeded', { 'retry-after': '86400' });
  });
  await assert.rejects(tomorrow.server.health(), { status: 429, retryAfterMs: 86_400_000 });
  assert.equal(sent, 1);
});

test('a call ends by its deadline, and by its signal', async () => {
  const never: typeof fetch = (_, init) =>
    new Promise((_resolve, reject) => {
      const { signal } = init as { signal: AbortSignal };
      if (signal.aborted) reject(signal.reason);
      else signal.addEventListener('abort', () => reject(signal.reason));
    });
  const silent = new Quarry({ baseUrl: server.baseUrl, fetch: never });
  await assert.rejects(silent.server.health({ timeoutMs: 10, retries: 0 }), { code: 'timed_out' });
  const controller = new AbortController();
  const call = silent.server.health({ signal: controller.signal });
  controller.abort(new Error('The user left.'));
  await assert.rejects(call, /The user left/);
});

test('a file is uploaded from a path, a Blob or a stream, and read back in whole or in part', async () => {
  const name = join(directory, 'näme.txt');
  writeFileSync(name, 'from a path');
  const progress: number[] = [];
  const fromPath = await quarry.files.upload(name, {
    owner: { user: user.id },
    onProgress: (stored) => progress.push(stored),
  });
  assert.deepEqual([fromPath.filename, fromPath.size, progress], ['näme.txt', 11, [11]]);
  const blob = await quarry.files.upload(new File(['from a Blob'], 'b.md', { type: 'text/markdown' }));
  assert.equal(blob.content_type, 'text/markdown');
  const stream = await quarry.files.upload(new Blob(['from a stream']).stream() as ReadableStream<Uint8Array>, {
    filename: 's',
    size: 13,
  });
  assert.equal(await (await quarry.files.content(stream.id)).text(), 'from a stream');
  const part = await quarry.files.content(blob.id, { range: 'bytes=7-10' });
  assert.deepEqual([part.status, await part.text()], [206, 'Blob']);
});

test('a large upload resumes behind the bytes that are stored when the connection breaks', async () => {
  const proxy = await openBreakingProxy(server.baseUrl);
  try {
    proxy.breakAfter.push(3_000_000, 100_000);
    const bytes = new Uint8Array(20_000_000).map((_, at) => at % 251);
    const client = new Quarry({ baseUrl: proxy.url, key: app.secretKey });
    const progress: number[] = [];
    const file = await client.files.upload(new Blob([bytes]), {
      filename: 'large.bin',
      owner: { user: user.id },
      onProgress: (stored) => progress.push(stored),
    });
    assert.deepEqual(proxy.breakAfter, []);
    assert.equal(progress.at(-1), bytes.length);
    assert.ok(Buffer.from(await (await quarry.files.content(file.id)).arrayBuffer()).equals(bytes));
  } finally {
    await proxy.close();
  }
});

test('content is added, awaited and found; a document is extracted with its text', async () => {
  const { id } = await quarry.knowledge.createSource({ type: 'knowledge/documents', user: user.id });
  const added = await quarry.knowledge.add(id, { title: 'Refunds', content: { data: 'A refund takes five days.' } });
  assert.equal(added.status, 'succeeded');
  const { data } = await quarry.knowledge.search({ sources: [id], query: 'how long is a refund' });
  assert.match(data[0]?.content ?? '', /five days/);
  const file = await quarry.files.upload(new File(['# Title\n\nText.'], 'a.md', { type: 'text/markdown' }));
  const extraction = await quarry.extractions.run({ file: file.id, destination_kind: 'storage' });
  assert.deepEqual([extraction.state, extraction.outputs?.length], ['done', 1]);
});

const graph = (nodes: object[]) => ({ kind: 'WorkflowGraph', version: 1, start_node: 'first', nodes });

test('an automation is run to its end, and a run that an event started is awaited too', async () => {
  const input = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const;
  const greet = await quarry.automations.create({
    ...{ name: 'Greet', type: 'invoked', input_schema: input },
    workflow: graph([{ id: 'first', kind: 'transform', value: 'Hello {{$.name}}' }]),
  });
  await quarry.automations.activate(greet.id);
  const run = await quarry.automations.run(greet.id, { input, payload: { name: 'Ada' } });
  assert.deepEqual([run.status, run.result], ['completed', 'Hello Ada']);
  const steps: string[] = [];
  for await (const { type } of quarry.runs.journal(run.id, { limit: 1 })) steps.push(type);
  assert.equal(steps.at(-1), 'run_completed');

  const heard = await quarry.automations.create({
    ...{ name: 'Heard', type: 'trigger', trigger: 'ship.sailed' },
    workflow: graph([{ id: 'first', kind: 'transform', value: '{{$.payload.port}}' }]),
  });
  await quarry.automations.activate(heard.id);
  const stream = quarry.events.stream()[Symbol.asyncIterator]();
  assert.equal((await stream.next()).value?.event, 'ready');
  await quarry.events.emit({ name: 'ship.sailed', payload: { port: 'Oslo' } });
  for (let ended = false; !ended; ) {
    const { value } = await stream.next();
    ended = (value as { data: { type?: string } }).data.type === 'automation_run.completed';
  }
  await stream.return?.();
  const { data } = await quarry.automations.listRuns(heard.id);
  assert.ok(data[0]);
  assert.equal((await quarry.runs.waitFor(data[0].id)).result, 'Oslo');
});

test('waiting looks again and again while the app has no stream left', async () => {
  let refused = 0;
  const refuse = async ({ url }: Request) => {
    const [, run] = /\/automation_runs\/(\w+)\/stream$/.exec(url) ?? [];
    if (run === undefined) return undefined;
    refused += 1;
    await quarry.runs.signal(run, { name: 'go' });
    return failed(429, 'rate_limited');
  };
  const client = watched(refuse, { retries: 0 });
  const { id } = await client.automations.create({
    ...{ name: 'Short', type: 'invoked' },
    // The run waits until the client has looked.
    workflow: graph([
      { id: 'first', kind: 'wait_for_signal', name: 'go', on_success: 'last' },
      { id: 'last', kind: 'transform', value: 'Bergen' },
    ]),
  });
  await client.automations.activate(id);
  assert.equal((await client.automations.run(id, { payload: {} })).result, 'Bergen');
  assert.equal(refused, 1);
});

test('a stream whose connection breaks continues after the last event', async () => {
  let opened = 0;
  const lastIds: (string | null)[] = [];
  const client = watched(async (request) => {
    if (!request.url.includes('/kv_watch')) return undefined;
    lastIds.push(request.headers.get('last-event-id'));
    const response = await fetch(request);
    if (opened++ > 0) return response;
    // The first connection breaks after it has brought one change.
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let text = '';
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value } = await reader.read();
        text += new TextDecoder().decode(value);
        if (value) controller.enqueue(value);
        if (/event: put[\s\S]*\n\n/.test(text)) {
          await reader.cancel();
          controller.error(new TypeError('terminated'));
        }
      },
    });
    return new Response(body, response);
  });
  const seen: unknown[] = [];
  for await (const { event, data } of client.kv.watch({ prefix: 'watched', user: user.id })) {
    if (event === 'ready') await quarry.kv.put('watched1', { value: '1', user: user.id });
    if (event !== 'put') continue;
    seen.push((data as { value: string }).value);
    if (seen.length === 2) break;
    await quarry.kv.put('watched2', { value: '2', user: user.id });
  }
  assert.deepEqual(seen, ['1', '2']);
  assert.equal(lastIds.length, 2);
  assert.ok(lastIds[1]);
});

/** A signed-in session whose access token is about to expire. */
async function signedIn(see: Parameters<typeof watched>[0]) {
  const email = `${crypto.randomUUID()}@example.com`;
  await quarry.users.create({ email, name: 'Eve', password: 'correct horse battery' });
  let tokens: Tokens | undefined;
  const save = (given: Tokens | undefined) => {
    tokens = given;
  };
  const session = new Session({ load: () => tokens, save });
  const client = watched(see, { key: app.publishableKey, session });
  await session.login({ email, password: 'correct horse battery' });
  assert.ok(tokens);
  tokens = { ...tokens, expiresAt: 0 };
  return { client, session, email };
}

test('an expired token is renewed once for all waiting calls', async () => {
  let refreshed = 0;
  const { client, email } = await signedIn((request) => {
    if (request.url.endsWith('/auth/refresh')) refreshed++;
    return undefined;
  });
  const found = await Promise.all(Array.from({ length: 20 }, () => client.users.me()));
  assert.ok(found.every((one) => one.email === email));
  assert.equal(refreshed, 1);
});

test('a refresh token is never sent twice, and not at all to a server that cannot be reached', async () => {
  let refreshed = 0;
  let reachable = false;
  const { client } = await signedIn(async (request) => {
    if (request.url.endsWith('/healthz') && !reachable) throw new TypeError('fetch failed');
    if (!request.url.endsWith('/auth/refresh')) return undefined;
    refreshed++;
    await fetch(request);
    throw new TypeError('fetch failed');
  });
  await assert.rejects(client.users.me(), { code: 'unreachable' });
  assert.equal(refreshed, 0);
  reachable = true;
  await assert.rejects(client.users.me(), { code: 'signed_out' });
  await assert.rejects(client.users.me(), { code: 'signed_out' });
  assert.equal(refreshed, 1);
});

test('the message of a webhook is accepted with its signature, and no other', async () => {
  const secret = `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64')}`;
  const body = JSON.stringify({
    id: 'evt_1',
    type: 'file.created',
    timestamp: '',
    sequence: 1,
    data: { filename: 'ü' },
  });
  const sign = (at: Date) => ({
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': `v1,AAAA ${new Webhook(secret).sign('evt_1', at, body)}`,
  });
  const headers = sign(new Date());
  const event = await verifyWebhook(body, headers, secret);
  assert.ok(event.type === 'file.created');
  await verifyWebhook(new TextEncoder().encode(body), new Headers(headers), secret);
  await assert.rejects(verifyWebhook(body.replace('ü', 'u'), headers, secret), /No signature/);
  await assert.rejects(verifyWebhook(body, sign(new Date(Date.now() - 400_000)), secret), /too long ago/);
  await assert.rejects(verifyWebhook(body, { ...headers, 'webhook-id': undefined }, secret), /no header webhook-id/);
});

test('an extraction takes the JSON Schema of a library, and its data has the type', async () => {
  const invoice = z.object({ total: z.number() });
  const wanted: unknown[] = [];
  const client = watched(async (request) => {
    wanted.push(((await request.clone().json()) as { schema: unknown }).schema);
    return Response.json({ id: 'ext_1', state: 'done', outputs: [{ data: { total: 7 } }] }, { status: 201 });
  });
  const ended = await client.extractions.run({ file: 'fil_1', destination_kind: 'storage', schema: invoice });
  const total: number | undefined = ended.outputs?.[0]?.data?.total;
  assert.equal(total, 7);
  assert.deepEqual((wanted[0] as { properties: object }).properties, { total: { type: 'number' } });
});
