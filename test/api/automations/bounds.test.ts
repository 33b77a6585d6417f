import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

let server: TestServer;
let client: AutomationsClient;
let app: TestApp;
const clock = new ManualClock();

before(async () => {
  server = await startTestServer({ clock });
  app = await server.provision.app();
  client = new AutomationsClient(server, app);
});

after(() => server?.close());

const uuidOf = ({ id }: { id: string }) => parseId('automationRun', id) ?? '';
const limit = 32 * 1024 * 1024;

test('a node whose expressions select more than a run may hold fails before they are all evaluated', async () => {
  const text = 'x'.repeat(200_000);
  const value = Array.from({ length: 1_000 }, () => '{{$.text}}');
  const run = await client.runGraph(graphOf({ id: 'a', kind: 'transform', value }), { text });
  assert.deepEqual([run.status, run.error?.code], ['failed', 'members_too_large']);
});

test('the bytes of a journal are counted with each entry', async () => {
  const { id: automation } = await client.createAutomation({
    workflow: graphOf(
      { id: 'pause', kind: 'wait_for_signal', name: 'go', on_success: 'each' },
      { id: 'each', kind: 'for_each', items: '[1..5]', node: { id: 'one', kind: 'transform', value: 'é{{$item}}' } },
    ),
  });
  const run = await client.invoke(automation);
  await client.waitUntilWaiting(run.id);
  await client.call('POST', `/automation_runs/${run.id}/signal`, { name: 'go', payload: 'ü' });
  assert.equal((await client.waitForEnd(run.id)).status, 'completed');
  const [counted] = await server.db<{ bytes: number; stored: number }[]>`
    select r.journal_bytes as bytes, sum(octet_length(e.record::text))::bigint as stored
    from automation_runs r join automation_run_entries e on e.app_id = r.app_id and e.run_id = r.id
    where r.id = ${uuidOf(run)} group by r.journal_bytes`;
  assert.ok(counted && counted.bytes > 1_000);
  assert.equal(counted.bytes, counted.stored);
});

test('a run whose journal has too many bytes takes no signals, and fails when it continues', async () => {
  const { id: automation } = await client.createAutomation({
    workflow: graphOf({ id: 'pause', kind: 'wait', seconds: 60, on_success: 'b' }, { id: 'b', kind: 'trigger' }),
  });
  const run = await client.invoke(automation);
  await client.waitUntilWaiting(run.id);
  const signal = () => client.call('POST', `/automation_runs/${run.id}/signal`, { name: 'go' });
  assert.equal((await signal()).status, 200);
  // The job that the signal set off would go on with the bytes that it has read.
  await until(async () => (await server.db`select 1 from jobs where app_id = ${app.app.uuid}`).length === 0);
  await server.db`update automation_runs set journal_bytes = ${limit + 1} where id = ${uuidOf(run)}`;
  assert.equal((await signal()).status, 409);
  clock.advance(61_000);
  const ended = await client.waitForEnd(run.id);
  assert.deepEqual([ended.status, ended.error?.code], ['failed', 'journal_limit']);
});

test('a change whose schema takes long to check does not lock the automation meanwhile', async () => {
  const automation = await client.createAutomation({ workflow: graphOf({ id: 'a', kind: 'trigger' }) });
  // Each definition is checked twice as often as the one that uses it, until a deadline ends it.
  const $defs: Record<string, unknown> = { d0: { type: 'object' } };
  for (let i = 1; i <= 40; i++) $defs[`d${i}`] = { allOf: [1, 2].map(() => ({ $ref: `#/$defs/d${i - 1}` })) };
  const input_schema = { $defs, $ref: '#/$defs/d40' };
  const order: string[] = [];
  const path = `/automations/${automation.id}`;
  const slow = client.call('PATCH', path, { input_schema }).then(({ status }) => {
    order.push(`schema ${status}`);
  });
  const locked = async () =>
    (
      await server.db`select 1 from pg_stat_activity where state = 'idle in transaction' and datname = current_database()`
    ).length > 0;
  for (let look = 0; look < 20 && !(await locked()); look++) await new Promise((resolve) => setTimeout(resolve, 10));
  const named = client.call('PATCH', path, { name: 'other' }).then(({ status }) => {
    order.push(`name ${status}`);
  });
  await Promise.all([slow, named]);
  assert.deepEqual(order, ['name 200', 'schema 422']);
});
