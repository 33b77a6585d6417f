import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { WorkClaims } from '../../../src/automations/engine/work-claims.ts';
import { startDueSchedules } from '../../../src/automations/triggers/schedules.ts';
import { formatId, parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, entryTypes, graphOf, type Run } from '../../support/automations.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

let server: TestServer;
let world: TestTenants;
let client: AutomationsClient;
let outside: Server;
let outsideUrl: string;
let answer: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => response.end('{}');

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
  world = await server.provision.world();
  client = new AutomationsClient(server, world.app);
  outside = createServer((request, response) => answer(request, response));
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve));
  outsideUrl = `http://127.0.0.1:${(outside.address() as AddressInfo).port}`;
});
after(async () => {
  outside.closeAllConnections();
  outside.close();
  await server.close();
});

test('http_request sends the configured request, with one idempotency key for all attempts', async () => {
  const seen: { method: string; url: string; key: unknown; type: unknown }[] = [];
  answer = (request, response) => {
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, key: headers['idempotency-key'], type: headers['content-type'] });
    response.statusCode = seen.length < 3 ? 503 : 201;
    response.end('{"made":true}');
  };
  const run = await client.runGraph(
    graphOf({
      ...{ id: 'h', kind: 'http_request', method: 'POST', url: `${outsideUrl}/things`, query: { a: 1, b: ['x', 'y'] } },
      ...{ body: { n: '{{$.n}}' }, retry: { max_attempts: 3, initial_seconds: 0.1 } },
    }),
    { n: 5 },
  );
  const result = run.result as { status: number; json: unknown } | undefined;
  assert.deepEqual([result?.status, result?.json], [201, { made: true }], JSON.stringify(run));
  assert.equal(seen.length, 3);
  assert.equal(new Set(seen.map((one) => one.key)).size, 1);
  assert.deepEqual([seen[0]?.method, seen[0]?.url, seen[0]?.type], ['POST', '/things?a=1&b=x&b=y', 'application/json']);
  const journal = await client.journal(run.id);
  assert.equal(seen[0]?.key, journal.find((entry) => entry.node_id === 'h')?.command_id);
  assert.equal(entryTypes(journal).filter((type) => type === 'node_retry_scheduled h').length, 2);
});

test('the response of http_request is decompressed within its bound and read in its charset', async () => {
  const bodies: Record<string, [headers: Record<string, string>, body: Buffer]> = {
    '/gzip': [{ 'content-encoding': 'gzip' }, gzipSync('{"a":"é"}')],
    '/latin1': [{ 'content-type': 'text/plain; charset=iso-8859-1' }, Buffer.from('caf\xe9', 'latin1')],
    '/bomb': [{ 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(50 * 1024 * 1024))],
    '/cut': [{ 'content-encoding': 'gzip' }, Buffer.from([0x1f, 0x8b])],
    '/odd': [{ 'content-encoding': 'rot13' }, Buffer.from('uryyb')],
  };
  answer = (request, response) => {
    const [headers, body] = bodies[request.url ?? ''] ?? [{}, Buffer.alloc(0)];
    response.writeHead(200, headers).end(body);
  };
  const ask = (path: string) =>
    client.runGraph(graphOf({ id: 'h', kind: 'http_request', method: 'GET', url: outsideUrl + path }));
  const bodyOf = async (path: string) => ((await ask(path)).result as { body: string } | undefined)?.body;
  assert.equal(await bodyOf('/gzip'), '{"a":"é"}');
  assert.equal(await bodyOf('/latin1'), 'café');
  assert.equal(await bodyOf('/cut'), '');
  assert.equal((await ask('/bomb')).error?.code, 'too_large');
  assert.equal((await ask('/odd')).error?.code, 'bad_response');
});

test('http_request fails for a status that is not expected, an unsafe address and an unresponsive server', async () => {
  answer = (request, response) => {
    if (request.url !== '/hang') response.writeHead(404).end();
  };
  const codes: [Record<string, unknown>, string | undefined][] = [
    [{ url: `${outsideUrl}/x` }, 'unexpected_status'],
    [{ url: `${outsideUrl}/x`, expect_status: 404 }, undefined],
    [{ url: `${outsideUrl}/x`, expect_status: [200, 404] }, undefined],
    [{ url: 'http://169.254.169.254/latest' }, 'unsafe_url'],
    [{ url: 'no url' }, 'invalid_url'],
    [{ url: `${outsideUrl}/hang`, timeout_seconds: 0.3 }, 'timeout'],
  ];
  for (const [members, code] of codes) {
    const run = await client.runGraph(graphOf({ id: 'h', kind: 'http_request', method: 'GET', ...members }));
    assert.equal(run.error?.code, code, JSON.stringify(run));
  }
});

/** An automation that sends a request and then waits for a signal. Its result is the status of the response. */
function createRequestAndSignal() {
  return client.createAutomation({
    workflow: graphOf(
      { id: 'h', kind: 'http_request', method: 'GET', url: `${outsideUrl}/slow`, on_success: 'w' },
      { id: 'w', kind: 'wait_for_signal', name: 'go', on_success: 'd' },
      { id: 'd', kind: 'complete', result: '{{$nodes.h.status}}' },
    ),
  });
}

test('the response of a request is kept when a signal arrives meanwhile', async () => {
  const { id } = await createRequestAndSignal();
  const held: ServerResponse[] = [];
  const asked = new Promise<void>((resolve) => {
    answer = (_request, response) => {
      held.push(response);
      resolve();
    };
  });
  const { id: run } = await client.invoke(id);
  await asked;
  assert.equal((await client.call('POST', `/automation_runs/${run}/signal`, { name: 'go' })).status, 200);
  answer = (_request, response) => {
    held.push(response);
    response.end('{}');
  };
  held[0]?.end('{}');
  assert.equal((await client.waitForEnd(run)).result, 200);
  assert.equal(held.length, 1);
});

test('a request whose result is written while a second worker claims it is not sent again', async (context) => {
  const released = Promise.withResolvers<void>();
  const secondClaims = Promise.withResolvers<void>();
  let takes = 0;
  const forRun = WorkClaims.prototype.forRun;
  context.mock.method(WorkClaims.prototype, 'forRun', function (this: WorkClaims, run: { appId: string; id: string }) {
    const claims = forRun.call(this, run);
    return {
      async take(commandId: string) {
        takes += 1;
        // It has read the journal, in which the request is still active.
        if (takes === 2) {
          secondClaims.resolve();
          await released.promise;
        }
        return claims.take(commandId);
      },
      async release(commandIds: string[]) {
        await claims.release(commandIds);
        released.resolve();
      },
    };
  });
  const { id } = await createRequestAndSignal();
  const held: ServerResponse[] = [];
  const asked = Promise.withResolvers<void>();
  answer = (_request, response) => {
    held.push(response);
    asked.resolve();
    if (held.length > 1) response.end('{}');
  };
  const { id: run } = await client.invoke(id);
  await asked.promise;
  assert.equal((await client.call('POST', `/automation_runs/${run}/signal`, { name: 'go' })).status, 200);
  await secondClaims.promise;
  held[0]?.end('{}');
  assert.equal((await client.waitForEnd(run)).result, 200);
  assert.equal(held.length, 1);
});

test('a document is read without a transaction, and its extraction is created once', async () => {
  const upload = { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from('Otters.').toString('base64') };
  const file = await client.call<{ id: string }>('POST', '/files', upload);
  const { id } = await client.createAutomation({
    workflow: graphOf(
      { id: 'x', kind: 'extract', file: file.body.id, destination_kind: 'storage', on_success: 'd' },
      { id: 'd', kind: 'complete', result: '{{$nodes.x.outputs[0].file.id}}' },
    ),
  });
  const { parser } = server.services;
  const parse = parser.parse.bind(parser);
  let parses = 0;
  let goOn = () => {};
  const reading = new Promise<void>((resolve) => {
    parser.parse = async (...given) => {
      parses += 1;
      const wait = new Promise<void>((go) => {
        goOn = go;
      });
      resolve();
      await wait;
      return parse(...given);
    };
  });
  try {
    const { id: run } = await client.invoke(id);
    await reading;
    const begun = new Date();
    // Other work of the server, such as the first entry of a ledger, may be in a transaction, which ends by itself.
    const look = () => server.db`
      select query from pg_stat_activity where datname = current_database() and xact_start < ${begun}`;
    await until(async () => (await look()).length === 0);
    assert.equal(entryTypes(await client.journal(run)).at(-1), 'node_started x');
    assert.equal((await client.call('POST', `/automation_runs/${run}/signal`, { name: 'other' })).status, 200);
    goOn();
    const ended = await client.waitForEnd(run);
    assert.match(String(ended.result), /^fil_/, JSON.stringify(ended));
    assert.equal(parses, 1);
    const count = await server.db`
      select 1 from automation_run_children where run_id = ${parseId('automationRun', run) ?? ''}`;
    assert.equal(count.length, 1);
  } finally {
    goOn();
    parser.parse = parse;
  }
});

test('file_write writes a file of the run’s identity', async () => {
  const data = Buffer.from('hello').toString('base64');
  const { id } = await client.createAutomation({
    run_as_user: world.member.id,
    workflow: graphOf({ id: 'f', kind: 'file_write', filename: 'a.txt', content_type: 'text/plain', data }),
  });
  const run = await client.waitForEnd((await client.invoke(id)).id);
  const file = run.result as { id: string; user: string; size: number } | undefined;
  assert.deepEqual([file?.user, file?.size], [world.member.id, 5], JSON.stringify(run));
  const refused = await client.runGraph(
    graphOf({ id: 'f', kind: 'file_write', filename: 'a.txt', content_type: 'text/plain', data: '%%%' }),
  );
  assert.equal(refused.error?.code, 'invalid_parameters');
});

test('a node checks its body as the route does, and fails with the same error', async () => {
  const made = { type: 'knowledge/documents', org: world.org.id };
  const { id: source } = (await client.call<{ id: string }>('POST', '/knowledge_sources', made)).body;
  const bodies: [Record<string, unknown>, unknown, RegExp][] = [
    [
      { kind: 'file_write', filename: 'a.png', content_type: '{{$.value}}', data: 'PGI+', share: true },
      'image/png,text/html',
      /^content_type: /,
    ],
    [
      { kind: 'file_write', filename: 'a.txt', content_type: 'text/plain', data: '', acl: '{{$.value}}' },
      { x: 1 },
      /^acl/,
    ],
    [{ kind: 'search', source, query: 'otters', max_results: '{{$.value}}' }, 1e9, /^max_results: /],
    [{ kind: 'search', source, query: 'otters', nothing_known: '{{$.value}}' }, 1, /^nothing_known: /],
    [{ kind: 'ingest', source, content: { data: 'x' }, title: '{{$decodeUrlComponent("a%00b")}}' }, '', /^title: /],
    [
      { kind: 'extract', destination_kind: 'storage', url: outsideUrl, mode: 'site', max_pages: '{{$.value}}' },
      3e9,
      /^max_pages: /,
    ],
    [{ kind: 'kv_set', user: world.member.id, key: 'k'.repeat(1_025), value: '{{$.value}}' }, 'x', /^key: /],
    [{ kind: 'kv_set', user: world.member.id, key: 'k', value: '{{$.value}}' }, '', /^value: /],
    [{ kind: 'kv_get', user: world.member.id, key: '{{$decodeUrlComponent("a%00b")}}' }, '', /^key: /],
  ];
  for (const [node, value, message] of bodies) {
    const run = await client.runGraph(graphOf({ id: 'n', ...node }), { value });
    assert.equal(run.error?.code, 'invalid_parameters', JSON.stringify([node, run]));
    assert.match(run.error?.message ?? '', message);
  }
});

test('changes of files and sources are events, with public ids', async () => {
  const names = [
    'file.created',
    'file.updated',
    'knowledge_source.created',
    'knowledge_source.updated',
    'knowledge_source.deleted',
  ];
  const listeners = new Map<string, string>();
  for (const trigger of names) {
    const workflow = graphOf({ id: 'a', kind: 'trigger' });
    listeners.set(trigger, (await client.createAutomation({ type: 'trigger', trigger, workflow })).id);
  }
  const others = await client.createAutomation({
    type: 'trigger',
    trigger: 'file.created',
    org: world.otherOrg.id,
    workflow: graphOf({ id: 'a', kind: 'trigger' }),
  });
  const upload = { filename: 'a.txt', content_type: 'text/plain', data: 'aGk=', org: world.org.id };
  const file = await client.call<{ id: string }>('POST', '/files', upload);
  await client.call('PATCH', `/files/${file.body.id}`, { filename: 'b.txt' });
  const made = { type: 'knowledge/documents', org: world.org.id };
  const source = await client.call<{ id: string }>('POST', '/knowledge_sources', made);
  await client.call('PATCH', `/knowledge_sources/${source.body.id}`, { state: 'paused' });
  await client.call('DELETE', `/knowledge_sources/${source.body.id}`);
  for (const [trigger, id] of listeners) {
    // Events of earlier tests may still be on their way to the listeners.
    if (trigger.startsWith('file')) await firstRun(id, (payload) => payload.file === file.body.id);
    else await firstRun(id, (payload) => payload.source === source.body.id);
    await client.call('DELETE', `/automations/${id}`);
  }
  const heard = await client.call<{ data: Run[] }>('GET', `/automations/${others.id}/runs`);
  assert.deepEqual(heard.body.data, []);
});

test('the database formats ids as the server does', async () => {
  for (const uuid of ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', world.org.uuid]) {
    const [row] = await server.db<[{ id: string }]>`select format_id('org', ${uuid}::uuid) as id`;
    assert.equal(row.id, formatId('org', uuid));
  }
});

test('many concurrent checks of a due schedule start one run', async () => {
  const { db, clock, log } = server.services;
  // The next tick is half an hour away, so that none falls into the test.
  const schedule = `${(new Date().getUTCMinutes() + 30) % 60} * * * *`;
  const { id } = await client.createAutomation({
    type: 'scheduled',
    schedule,
    workflow: graphOf({ id: 'a', kind: 'trigger' }),
  });
  await db`update automations set next_tick_at = now() - interval '2 hours' where schedule = ${schedule}`;
  await Promise.all(Array.from({ length: 8 }, () => startDueSchedules({ db, clock, log })));
  await firstRun(id);
  const all = await client.call<{ data: Run[] }>('GET', `/automations/${id}/runs`);
  assert.equal(all.body.data.length, 1);
});

test('a run that another worker has resumed is not advanced twice', async () => {
  const { id } = await client.createAutomation({ workflow: graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' }) });
  const { id: run } = await client.invoke(id);
  await client.waitUntilWaiting(run);
  const signals = Array.from({ length: 10 }, (_, n) =>
    client.call('POST', `/automation_runs/${run}/signal`, { name: 'go', payload: n }),
  );
  const statuses = (await Promise.all(signals)).map((one) => one.status);
  assert.ok(statuses.includes(200));
  assert.ok(statuses.every((status) => status === 200 || status === 409));
  await client.waitForEnd(run);
  const journal = await client.journal(run);
  assert.deepEqual(
    journal.map((entry) => entry.sequence),
    journal.map((_, index) => index + 1),
  );
  assert.equal(journal.filter((entry) => entry.type === 'node_completed').length, 1);
});

async function firstRun(
  automation: string,
  isWanted: (payload: Record<string, unknown>) => boolean = () => true,
): Promise<Run> {
  const deadline = Date.now() + 300_000;
  for (;;) {
    const { data } = (await client.call<{ data: Run[] }>('GET', `/automations/${automation}/runs`)).body;
    const run = data.find((one) => isWanted(one.payload as Record<string, unknown>));
    if (run) return client.waitForEnd(run.id);
    if (Date.now() > deadline) throw new Error(`No such run began: ${JSON.stringify(data)}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
