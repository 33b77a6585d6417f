import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, entryTypes, graphOf, type Run } from '../../support/automations.ts';
import { EventStream } from '../../support/event-stream.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

let server: TestServer;
let world: TestTenants;
let client: AutomationsClient;

before(async () => {
  server = await startTestServer();
  world = await server.provision.world();
  client = new AutomationsClient(server, world.app);
});
after(() => server.close());

const start = { id: 'start', kind: 'trigger', on_success: 'one' };
const done = { id: 'done', kind: 'complete', result: { n: '{{$.n}}' } };
const write = (id: string, next: string) => ({
  ...{ id, kind: 'kv_set', user: '{{$.user}}', key: `${id}/{{$.n}}`, value: 'seen', on_success: next },
});

/** The entries of a run by the transaction that wrote them. */
async function commitsOf({ id }: Run): Promise<string[][]> {
  const rows = await server.db<{ commit: string; type: string; nodeId: string | null }[]>`
    select xmin::text as commit, type, node_id from automation_run_entries
    where run_id = ${parseId('automationRun', id) ?? ''} order by sequence`;
  const commits = new Map<string, string[]>();
  for (const { commit, type, nodeId } of rows)
    commits.set(commit, [...(commits.get(commit) ?? []), nodeId === null ? type : `${type} ${nodeId}`]);
  return [...commits.values()];
}

/** The value of a key of the member. */
async function kvOf(key: string): Promise<unknown> {
  const { publishableKey } = world.app;
  const path = `/api/v1/kv/${encodeURIComponent(key)}`;
  return (await server.api('GET', path, { key: publishableKey, token: world.member.token })).body.value;
}

const node = (id: string, end = 'completed') => [`node_started ${id}`, `node_${end} ${id}`];

const missing = 'usr_0000000000000000000001';

test('effects that follow each other are written together, with the nodes around them and the end of the run', async () => {
  const workflow = graphOf(start, write('one', 'two'), write('two', 'done'), done);
  const { id: automation } = await client.createAutomation({ workflow });
  let run: Run;
  // A busy machine takes too long for one of them, and then writes the first without the second.
  do {
    run = await client.waitForEnd((await client.invoke(automation, { payload: { n: 1, user: world.member.id } })).id);
    assert.deepEqual([run.status, run.result], ['completed', { n: 1 }]);
  } while ((await commitsOf(run)).length > 1);
  assert.deepEqual(await commitsOf(run), [
    ['run_started', ...node('start'), ...node('one'), ...node('two'), ...node('done'), 'run_completed'],
  ]);
});

test('the items of a loop share transactions, each with a bounded number of effects', async () => {
  const each = { ...{ id: 'one', kind: 'kv_set', user: '{{$.user}}' }, key: 'item/{{$item}}', value: 'seen' };
  const run = await client.runGraph(
    graphOf({ id: 'each', kind: 'for_each', items: '{{$.items}}', concurrency: 1, node: each }),
    { items: Array.from({ length: 100 }, (_, n) => n), user: world.member.id },
  );
  assert.equal(run.status, 'completed');
  const commits = await commitsOf(run);
  assert.ok(commits.length < 50, `${commits.length} commits`);
  assert.ok(commits.every((entries) => entries.length <= 40));
});

test('an effect behind an expression that needs a process has a transaction of its own', async () => {
  const workflow = graphOf(start, write('one', 'two'), { ...write('two', 'done'), value: '{{$.n + 1}}' }, done);
  const run = await client.runGraph(workflow, { n: 11, user: world.member.id });
  assert.deepEqual(await commitsOf(run), [
    ['run_started', ...node('start'), ...node('one')],
    [...node('two'), ...node('done'), 'run_completed'],
  ]);
});

test('an effect that fails undoes none of those before it', async () => {
  const workflow = graphOf(
    start,
    write('one', 'two'),
    { ...write('two', 'done'), user: missing, on_error: 'three' },
    write('three', 'done'),
    done,
  );
  const run = await client.runGraph(workflow, { n: 12, user: world.member.id });
  assert.equal(run.status, 'completed');
  assert.deepEqual(await commitsOf(run), [
    ['run_started', ...node('start'), ...node('one')],
    [...node('two', 'failed')],
    [...node('three'), ...node('done'), 'run_completed'],
  ]);
  assert.deepEqual([await kvOf('one/12'), await kvOf('two/12'), await kvOf('three/12')], ['seen', undefined, 'seen']);
});

test('an effect that the database refuses undoes none of those before it', async () => {
  await server.db`create function refuse_entry() returns trigger language plpgsql as
    $$ begin raise exception 'refused' using errcode = 'QK001'; end $$`;
  await server.db`create trigger refuse_entry before insert on kv_entries for each row
    when (new.key like 'refused/%') execute function refuse_entry()`;
  try {
    const workflow = graphOf(start, write('one', 'refused'), write('refused', 'done'), done);
    const run = await client.runGraph(workflow, { n: 13, user: world.member.id });
    assert.deepEqual([run.status, run.error?.code, run.error?.node_id], ['failed', 'quota_exceeded', 'refused']);
    assert.deepEqual(entryTypes(await client.journal(run.id)).slice(3), [
      ...[...node('one'), ...node('refused', 'failed'), 'run_failed'],
    ]);
    assert.equal(await kvOf('one/13'), 'seen');
  } finally {
    await server.db`drop function refuse_entry() cascade`;
  }
});

test('an effect that waits for a lock keeps no lock of those before it', async () => {
  const workflow = graphOf(start, write('one', 'two'), { ...write('two', 'done'), user: '{{$.other}}' }, done);
  const { id: automation } = await client.createAutomation({ workflow });
  const run = await server.db.begin(async (tx) => {
    await tx`select 1 from users where id = ${parseId('user', world.admin.id) ?? ''} for update`;
    const payload = { n: 14, user: world.member.id, other: world.admin.id };
    const { id } = await client.invoke(automation, { payload });
    await until(async () => (await kvOf('one/14')) === 'seen');
    return id;
  });
  assert.equal((await client.waitForEnd(run)).status, 'completed');
});

test('what precedes a failed effect is written with its failure, and the effect is not', async () => {
  const workflow = graphOf(start, { ...write('one', 'done'), user: missing, on_error: 'done' }, done);
  const run = await client.runGraph(workflow, { n: 2 });
  assert.equal(run.status, 'completed');
  assert.deepEqual((await commitsOf(run))[0], ['run_started', ...node('start'), ...node('one', 'failed')]);
  assert.deepEqual(entryTypes(await client.journal(run.id)).slice(5), [...node('done'), 'run_completed']);
});

test('an effect is written although the node after it fails', async () => {
  const workflow = graphOf(
    start,
    write('one', 'bad'),
    {
      ...{ id: 'bad', kind: 'transform', value: '{{$.n.$error("no")}}', on_success: 'done' },
      retry: { max_attempts: 1 },
    },
    done,
  );
  const run = await client.runGraph(workflow, { n: 3, user: world.member.id });
  assert.equal(run.status, 'failed');
  assert.equal(await kvOf('one/3'), 'seen');
  assert.deepEqual(entryTypes(await client.journal(run.id)).slice(3), [
    ...[...node('one'), ...node('bad', 'failed'), 'run_failed'],
  ]);
});

test('an expression that takes long does not hold back the entries before it', async () => {
  const endless = '{{$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(?=a)(a+)+$/)}}';
  const run = await client.runGraph(graphOf(start, { id: 'one', kind: 'transform', value: endless }));
  assert.equal(run.error?.code, 'expression_limit');
  assert.deepEqual(await commitsOf(run), [
    ['run_started', ...node('start')],
    [...node('one', 'failed'), 'run_failed'],
  ]);
});

test('the items of a loop share commits, each with a bounded number of entries', async () => {
  const run = await client.runGraph(
    graphOf({
      ...{ id: 'each', kind: 'for_each', items: '{{$.items}}', concurrency: 1 },
      node: { id: 'one', kind: 'transform', value: '{{$item}}' },
    }),
    { items: Array.from({ length: 100 }, (_, n) => n) },
  );
  assert.equal(run.status, 'completed');
  assert.equal((run.result as unknown[]).length, 100);
  const commits = await commitsOf(run);
  assert.ok(commits.length < 50, `${commits.length} commits`);
  assert.ok(commits.every((entries) => entries.length <= 40));
});

test('a run whose first write is also its last is shown as running before its end', async () => {
  for (const workflow of [graphOf({ ...start, on_success: 'done' }, done), graphOf(write('one', 'done'), done)]) {
    const run = await client.runGraph(workflow, { n: 4, user: world.member.id });
    const stream = await EventStream.open(`${server.baseUrl}/api/v1/automation_runs/${run.id}/stream`, {
      ...{ 'x-api-key': world.app.secretKey, 'last-event-id': '1' },
    });
    const seen: string[] = [];
    for (let event = await stream.next(); event; event = await stream.next()) seen.push(event.data.status);
    assert.deepEqual(seen, ['running', 'completed']);
  }
});
