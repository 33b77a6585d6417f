import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer();
after(() => server.close());
const app = await server.provision.app();
const client = new AutomationsClient(server, app);

const waiting = graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' });
const perCustomer = { key: 'customer.id', limit: 1 };

async function invoke(automation: { id: string }, customer: unknown): Promise<string> {
  return (await client.invoke(automation.id, { payload: { customer: { id: customer } } })).id;
}

/** Waits until exactly these runs are active, and all others of the list are pending. */
async function untilActive(runs: readonly string[], active: readonly string[]): Promise<void> {
  await until(async () => {
    const found = await Promise.all(runs.map(async (id) => (await client.run(id)).status));
    return runs.every((id, index) => found[index] === (active.includes(id) ? 'running' : 'pending'));
  });
}

async function end(run: string): Promise<void> {
  await client.waitUntilWaiting(run);
  const sent = await client.call('POST', `/automation_runs/${run}/signal`, { name: 'go' });
  assert.equal(sent.status, 200, sent.text);
  await client.waitForEnd(run);
}

test('one run of each customer is active, also while it waits, and the others start in their order', async () => {
  const automation = await client.createAutomation({ workflow: waiting, concurrency: perCustomer });
  const [a1, b1, a2, a3] = [
    await invoke(automation, 'a'),
    await invoke(automation, 'b'),
    await invoke(automation, 'a'),
    await invoke(automation, 'a'),
  ];
  await untilActive([a1, b1, a2, a3], [a1, b1]);
  await end(a1);
  await untilActive([b1, a2, a3], [b1, a2]);
  await client.call('POST', `/automation_runs/${a2}/cancel`);
  await untilActive([b1, a3], [b1, a3]);
  await end(a3);
  await end(b1);
});

test('runs without the value share one limit, and values of another type are another value', async () => {
  const automation = await client.createAutomation({ workflow: waiting, concurrency: perCustomer });
  const runs = [
    await invoke(automation, 1),
    await invoke(automation, '1'),
    (await client.invoke(automation.id, { payload: { customer: 'x' } })).id,
    (await client.invoke(automation.id)).id,
  ];
  await untilActive(runs, runs.slice(0, 3));
  for (const run of runs) await end(run);
});

test('with `max_concurrent_runs` too, the oldest run whose value has room starts', async () => {
  const automation = await client.createAutomation({
    ...{ workflow: waiting, concurrency: perCustomer, max_concurrent_runs: 2 },
  });
  const [a1, b1] = [await invoke(automation, 'a'), await invoke(automation, 'b')];
  await untilActive([a1, b1], [a1, b1]);
  const [a2, a3, c1, d1] = [
    await invoke(automation, 'a'),
    await invoke(automation, 'a'),
    await invoke(automation, 'c'),
    await invoke(automation, 'd'),
  ];
  await end(b1);
  await untilActive([a1, a2, a3, c1, d1], [a1, c1]);
  await end(a1);
  await untilActive([a2, a3, c1, d1], [a2, c1]);
  await end(c1);
  await untilActive([a2, a3, d1], [a2, d1]);
  for (const run of [a2, a3, d1]) await end(run);
});

test('many runs at the same time never exceed the limit of their value, and all complete', async () => {
  const limit = 2;
  const automation = await client.createAutomation({
    workflow: graphOf(
      { id: 'a', kind: 'transform', value: 1, on_success: 'b' },
      { id: 'b', kind: 'transform', value: 2 },
    ),
    concurrency: { key: 'n', limit },
  });
  const keys = 5;
  const runs = await Promise.all(
    Array.from({ length: 60 }, (_, n) => client.invoke(automation.id, { payload: { n: n % keys } })),
  );
  for (const { id } of runs) assert.equal((await client.waitForEnd(id)).status, 'completed');
  const spans = await server.db<{ n: number; startedAt: Date; completedAt: Date }[]>`
    select (payload ->> 'n')::integer as n, started_at, completed_at from automation_runs
    where automation_id = ${parseId('automation', automation.id) ?? ''}`;
  assert.equal(spans.length, runs.length);
  for (let n = 0; n < keys; n += 1) {
    const own = spans.filter((span) => span.n === n);
    for (const { startedAt: at } of own) {
      // A run that ends in the millisecond in which another starts has made room for it.
      const active = own.filter(({ startedAt, completedAt }) => startedAt <= at && completedAt > at).length;
      assert.ok(active <= limit, `${active} runs of ${n} were active at ${at.toISOString()}`);
    }
  }
});

test('a higher limit, or none, starts the runs that wait', async () => {
  const automation = await client.createAutomation({ workflow: waiting, concurrency: perCustomer });
  const runs: string[] = [];
  for (let n = 0; n < 4; n += 1) runs.push(await invoke(automation, 'a'));
  const untilCount = (count: number) =>
    until(async () => {
      const found = await Promise.all(runs.map(async (id) => (await client.run(id)).status));
      return found.filter((status) => status === 'running').length === count;
    });
  await untilActive(runs, runs.slice(0, 1));
  const more = await client.call('PATCH', `/automations/${automation.id}`, {
    concurrency: { ...perCustomer, limit: 2 },
  });
  assert.deepEqual(more.body.concurrency, { key: 'customer.id', limit: 2 });
  await untilCount(2);
  const none = await client.call('PATCH', `/automations/${automation.id}`, { concurrency: null });
  assert.deepEqual([none.status, none.body.concurrency], [200, undefined]);
  await untilActive(runs, runs);
  for (const run of runs) await end(run);
});

test('`concurrency` is refused without a graph, and with a path or limit that is not one', async () => {
  const create = async (body: Record<string, unknown>) => {
    const refused = await client.call<ErrorBody>('POST', '/automations', { name: 'x', type: 'invoked', ...body });
    assert.equal(refused.status, 422, refused.text);
    return refused.body.error.fields?.[0]?.field;
  };
  const program = { kind: 'WorkflowProgram', version: 1, name: 'x' };
  assert.equal(await create({ concurrency: perCustomer }), 'concurrency');
  assert.equal(await create({ concurrency: perCustomer, workflow: program }), 'concurrency');
  assert.equal(await create({ concurrency: { key: 'a..b', limit: 1 }, workflow: waiting }), 'concurrency.key');
  assert.equal(await create({ concurrency: { key: 'a', limit: 0 }, workflow: waiting }), 'concurrency.limit');
  const automation = await client.createAutomation({ workflow: waiting, concurrency: perCustomer });
  const changed = await client.call<ErrorBody>('PATCH', `/automations/${automation.id}`, { workflow: program });
  assert.equal(changed.status, 422, changed.text);
});
