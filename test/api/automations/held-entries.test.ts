import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, entryTypes, graphOf, type Run } from '../../support/automations.ts';
import { EventStream } from '../../support/event-stream.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

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

const node = (id: string, end = 'completed') => [`node_started ${id}`, `node_${end} ${id}`];

test('a node without an effect is written with the next effect, and the end of a run with its last one', async () => {
  const workflow = graphOf(start, write('one', 'two'), write('two', 'done'), done);
  const run = await client.runGraph(workflow, { n: 1, user: world.member.id });
  assert.deepEqual([run.status, run.result], ['completed', { n: 1 }]);
  assert.deepEqual(await commitsOf(run), [
    ['run_started', ...node('start'), ...node('one')],
    [...node('two'), ...node('done'), 'run_completed'],
  ]);
});

test('what precedes a failed effect is written with its failure, and the effect is not', async () => {
  const workflow = graphOf(
    start,
    { ...write('one', 'done'), user: 'usr_0000000000000000000001', on_error: 'done' },
    done,
  );
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
  const entry = await server.api('GET', '/api/v1/kv/one%2F3', {
    key: world.app.publishableKey,
    token: world.member.token,
  });
  assert.equal(entry.body.value, 'seen');
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
