import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, entryTypes, graphOf, type Run } from '../../support/automations.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let client: AutomationsClient;
const clock = new ManualClock();

before(async () => {
  server = await startTestServer({ clock, env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
  client = new AutomationsClient(server, await server.provision.app());
});

after(() => server?.close());

const uuidOf = (run: { id: string }) => parseId('automationRun', run.id) ?? '';

test('an expression that its deadline ended fails the run without a retry', async () => {
  const run = await client.runGraph(
    graphOf({
      id: 'each',
      kind: 'for_each',
      items: '[1..3]',
      node: {
        id: 'one',
        kind: 'transform',
        value: '{{$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(?=a)(a+)+$/)}}',
        retry: { max_attempts: 100, initial_seconds: 0 },
      },
      retry: { max_attempts: 100, initial_seconds: 0 },
      concurrency: 1,
    }),
  );
  assert.equal(run.status, 'failed');
  assert.equal(run.error?.code, 'expression_limit');
  assert.deepEqual(entryTypes(await client.journal(run.id)), [
    ...['run_started', 'node_started each', 'node_started one', 'node_failed one', 'node_failed each', 'run_failed'],
  ]);
});

/** A run that has had one child and waits for a signal before it continues to `next`. */
async function startTree(...next: Record<string, unknown>[]) {
  const child = await client.createAutomation({ workflow: graphOf({ id: 'a', kind: 'trigger' }) });
  const call = { kind: 'run_automation', automation: child.id };
  const root = await client.createAutomation({
    workflow: graphOf(
      { id: 'first', ...call, on_success: 'pause' },
      { id: 'pause', kind: 'wait_for_signal', name: 'go', on_success: next[0]?.id },
      ...next,
    ),
  });
  const run = await client.invoke(root.id);
  await client.waitUntilWaiting(run.id);
  const resume = () => client.call('POST', `/automation_runs/${run.id}/signal`, { name: 'go' });
  return { run, child, call, resume };
}

test('the runs of a tree are limited, and counted in the database', async () => {
  const { run, call, resume } = await startTree({
    ...{ id: 'second', kind: 'for_each', items: '[1..50]', concurrency: 50 },
    node: { id: 'one', kind: 'run_automation', automation: 'self', retry: { max_attempts: 100, initial_seconds: 0 } },
  });
  await client.call('PATCH', `/automations/${call.automation}`, { lookup_key: 'self' });
  const [tree] = await server.db<{ runs: number }[]>`select runs from automation_run_trees where id = ${uuidOf(run)}`;
  assert.equal(tree?.runs, 2);
  await server.db`update automation_run_trees set runs = 9997 where id = ${uuidOf(run)}`;
  await resume();
  const ended = await client.waitForEnd(run.id);
  assert.deepEqual([ended.status, ended.error?.code, ended.error?.node_id], ['failed', 'tree_limit', 'second']);
  const [{ count } = { count: 0 }] = await server.db<{ count: number }[]>`
    select count(*)::integer as count from automation_runs where tree_id = ${uuidOf(run)}`;
  assert.equal(count, 1 + 3);
});

test('runs started by events of a run count for its tree', async () => {
  const { run, resume } = await startTree({ id: 'tell', kind: 'emit_event', name: 'told', payload: {} });
  const listener = await client.createAutomation({
    type: 'trigger',
    trigger: 'told',
    workflow: graphOf({ id: 'a', kind: 'trigger' }),
  });
  const listed = async () =>
    (
      await client.call<{ data: { status: string; error?: { code: string } }[] }>(
        'GET',
        `/automations/${listener.id}/runs`,
      )
    ).body.data;
  await server.db`update automation_run_trees set runs = 10000 where id = ${uuidOf(run)}`;
  await resume();
  assert.equal((await client.waitForEnd(run.id)).status, 'completed');
  while ((await listed()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(
    (await listed()).map(({ status, error }) => [status, error?.code]),
    [['failed', 'tree_limit']],
  );
});

test('events of the files, extractions and ingestions of a run count for its tree and its depth', async (t) => {
  const make = async (path: string, body: unknown) => (await client.call<{ id: string }>('POST', path, body)).body;
  const org = await make('/orgs', { name: 'O' });
  const { id: source } = await make('/knowledge_sources', { type: 'knowledge/documents', org: org.id });
  const { id: document } = await make('/files', {
    filename: 'a.html',
    content_type: 'text/html',
    data: 'PHA+SGk8L3A+',
  });
  const page = createServer((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<p>A page.</p>'),
  );
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
  t.after(() => page.close());
  const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}/`;
  const write = { id: 'again', kind: 'file_write', filename: 'f.txt', content_type: 'text/plain', data: 'QQ==' };
  const read = { id: 'again', kind: 'extract', destination_kind: 'storage' };
  const loops: [string, Record<string, unknown>][] = [
    ['file.created', write],
    ['extraction.completed', { ...read, file: document }],
    ['extraction.completed', { ...read, url, mode: 'link' }],
    ['file.created', { ...read, url, mode: 'link' }],
    ['ingestion.succeeded', { id: 'again', kind: 'ingest', source, content: { data: 'A text.' } }],
  ];
  for (const [trigger, node] of loops) {
    const looping = await client.createAutomation({ type: 'trigger', trigger, workflow: graphOf(node) });
    const first = await client.invoke((await client.createAutomation({ workflow: graphOf(node) })).id);
    const runs = async () => (await client.call<{ data: Run[] }>('GET', `/automations/${looping.id}/runs`)).body.data;
    while ((await runs())[0]?.error?.code !== 'event_depth') await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal((await runs()).length, 8, trigger);
    const [tree] = await server.db<{ runs: number }[]>`
      select runs from automation_run_trees where id = ${uuidOf(first)}`;
    assert.equal(tree?.runs, 9, trigger);
    await client.call('DELETE', `/automations/${looping.id}`);
    // The last events of this loop must not set off the next one.
    while ((await server.db`select 1 from events where dispatched_at is null limit 1`).length > 0)
      await new Promise((resolve) => setTimeout(resolve, 20));
  }
});

test('the journal entries of a tree are limited', async () => {
  const { run, resume } = await startTree({ id: 'last', kind: 'trigger' });
  await server.db`update automation_runs set sequence = 250000 where tree_id = ${uuidOf(run)}`;
  clock.advance(2_000);
  await resume();
  const ended = await client.waitForEnd(run.id);
  assert.deepEqual([ended.status, ended.error?.code], ['failed', 'tree_limit']);
});

test('an upstream response of 5,000 nested brackets fails its node, which is not repeated', async () => {
  let requests = 0;
  const outside: Server = createServer((_request, response) => {
    requests += 1;
    response.end('['.repeat(5_000) + ']'.repeat(5_000));
  });
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve));
  try {
    const url = `http://127.0.0.1:${(outside.address() as AddressInfo).port}/`;
    const run = await client.runGraph(
      graphOf({
        ...{ id: 'fetch', kind: 'http_request', method: 'GET', url },
        retry: { max_attempts: 5, initial_seconds: 0 },
      }),
    );
    assert.deepEqual([run.status, run.error?.code], ['failed', 'output_too_deep']);
    assert.equal(requests, 1);
  } finally {
    outside.closeAllConnections();
    outside.close();
  }
});

test('a run whose advance throws fails after a few attempts', async () => {
  const { id } = await client.createAutomation({
    workflow: graphOf(
      { id: 'pause', kind: 'wait_for_signal', name: 'go', on_success: 'b' },
      { id: 'b', kind: 'trigger' },
    ),
  });
  // A graph that no check has let in: its next node is of a kind that does not exist.
  await server.db`
    update automation_graphs set graph = replace(graph::text, '"trigger"', '"none"')::json
    where automation_id = ${parseId('automation', id) ?? ''}`;
  const run = await client.invoke(id);
  await client.waitUntilWaiting(run.id);
  await client.call('POST', `/automation_runs/${run.id}/signal`, { name: 'go' });
  const hurry = setInterval(async () => {
    await server.db`update jobs set run_at = now() where attempts between 1 and 2 and locked_at is null`;
  }, 50);
  try {
    const ended = await client.waitForEnd(run.id);
    assert.deepEqual([ended.status, ended.error?.code], ['failed', 'internal_error']);
  } finally {
    clearInterval(hurry);
  }
});

test('an app whose requests wait for the database delays another app by only a few of them', async () => {
  const apps = [await server.provision.app(), await server.provision.app()];
  const [many, one] = await Promise.all(
    apps.map(async ({ secretKey: key }) => {
      const created = await server.api<{ id: string }>('POST', '/api/v1/orgs', { key, body: { name: 'O' } });
      return () => server.api('GET', `/api/v1/orgs/${created.body.id}`, { key });
    }),
  );
  assert.ok(many && one);
  const held = await Promise.all(Array.from({ length: 6 }, () => server.services.db.reserve()));
  let ended = 0;
  let arrived = 0;
  const count = () => {
    arrived += 1;
  };
  server.server.fastify.server.on('request', count);
  const others = Array.from({ length: 60 }, () => many().then(() => (ended += 1)));
  while (arrived < 60) await new Promise((resolve) => setTimeout(resolve, 5));
  const last = one().then(() => ended);
  while (arrived < 61) await new Promise((resolve) => setTimeout(resolve, 5));
  // It came after them, so all of them wait for a connection by now.
  assert.equal((await server.api('GET', '/healthz')).status, 200);
  for (const connection of held) connection.release();
  const before = await last;
  await Promise.all(others);
  server.server.fastify.server.off('request', count);
  assert.ok(before < 40, `${before} of 60 requests of the other app came first`);
});

test('runs whose expression never ends delay those of another automation of the app by none of them', async () => {
  const endless = '{{$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(?=a)(a+)+$/)}}';
  const transform = (value: string) => graphOf({ id: 'one', kind: 'transform', value });
  const slow = await client.createAutomation({ workflow: transform(endless) });
  const other = await client.createAutomation({ workflow: transform('{{1 + 1}}') });
  await client.waitForEnd((await client.invoke(other.id)).id);
  // More runs than the app has job slots.
  const runs = await Promise.all(Array.from({ length: 16 }, () => client.invoke(slow.id)));
  assert.equal((await client.waitForEnd((await client.invoke(other.id)).id)).status, 'completed');
  const states = await Promise.all(runs.map(({ id }) => client.run(id)));
  const ended = states.filter(({ status }) => status === 'failed').length;
  assert.ok(ended <= 4, `${ended} of the 16 runs ended first`);
  await Promise.all(runs.map(({ id }) => client.call('POST', `/automation_runs/${id}/cancel`)));
});
