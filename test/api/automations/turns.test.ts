import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { usualTimeouts } from '../../../src/lib/timeouts.ts';
import { AutomationsClient, graphOf, type Run } from '../../support/automations.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* The automations of an app take turns in the processes for expressions, whatever evaluates them. */

let server: TestServer;
let client: AutomationsClient;
const clock = new ManualClock();
const timeouts = { ...usualTimeouts };

before(async () => {
  server = await startTestServer({ clock, timeouts, logLevel: 'silent', env: { QUARRY_JOB_WORKERS: '2' } });
  client = new AutomationsClient(server, await server.provision.app());
});
after(() => server?.close());

/** Runs work while no expression is ended, however long it takes. */
async function withoutDeadline(work: () => Promise<void>): Promise<void> {
  timeouts.expressionMs = Number.POSITIVE_INFINITY;
  try {
    await work();
  } finally {
    timeouts.expressionMs = usualTimeouts.expressionMs;
  }
}

/** It never ends, and V8's linear engine does not take it. */
const endless = `$match("${'a'.repeat(40)}!", /^(?=a)(a+)+$/)`;
/** More than the app has job slots. */
const many = 6;
const manyTimes = <T>(work: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: many }, work));
const graph = graphOf({ id: 'one', kind: 'trigger' });

const runsOf = async ({ id }: { id: string }) =>
  (await client.call<{ data: Run[] }>('GET', `/automations/${id}/runs?limit=100`)).body.data;
const countEnded = async (automation: { id: string }) =>
  (await runsOf(automation)).filter(({ status }) => status === 'failed').length;

test('events whose filter never ends delay those of another automation by none of them, of the same event too', async () => {
  const listen = (trigger: string, filter: string) =>
    client.createAutomation({ type: 'trigger', trigger, filter, workflow: graph });
  const slow = await listen('slow', endless);
  const beside = await listen('slow', '1 + 1 = 2');
  const other = await listen('other', '1 + 1 = 2');
  const emit = (name: string) => client.call('POST', '/events', { name, payload: {} });
  await emit('other');
  await until(async () => (await runsOf(other)).length === 1);
  await withoutDeadline(async () => {
    await manyTimes(() => emit('slow'));
    await emit('other');
    // The first one is in progress, and everything about its event waits for it.
    await until(async () => (await runsOf(other)).length === 2 && (await runsOf(beside)).length === many - 1);
    assert.equal(await countEnded(slow), 0);
  });
  await until(async () => (await countEnded(slow)) === many);
  assert.deepEqual([(await runsOf(other)).length, (await runsOf(beside)).length], [2, many]);
});

test('woken runs whose expression never ends delay those of another automation by none of them', async () => {
  const waiting = (value: string) =>
    client.createAutomation({
      workflow: graphOf(
        { id: 'pause', kind: 'wait', seconds: 60, on_success: 'one' },
        { id: 'one', kind: 'transform', value },
      ),
    });
  const slow = await waiting(`{{${endless}}}`);
  const other = await waiting('{{1 + 1}}');
  const runs = await manyTimes(() => client.invoke(slow.id));
  runs.push(await client.invoke(other.id));
  for (const { id } of runs) await client.waitUntilWaiting(id);
  await withoutDeadline(async () => {
    clock.advance(61_000);
    assert.equal((await client.waitForEnd(runs.at(-1)?.id ?? '')).status, 'completed');
    assert.equal(await countEnded(slow), 0);
  });
  await Promise.all(runs.map(({ id }) => client.call('POST', `/automation_runs/${id}/cancel`)));
});
