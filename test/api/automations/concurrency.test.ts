import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { completed, ProgramWorker, programOf, started } from '../../support/programs.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

let offsetMs = 0;
const clock = { now: () => new Date(Date.now() + offsetMs) };
const server = await startTestServer({ clock });
after(() => server.close());
const app = await server.provision.app();
const client = new AutomationsClient(server, app);

const waiting = graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' });
const perCustomer = { key: 'customer.id', limit: 1 };

type Pending = { pending_for?: { limit: string; until?: string; ahead: number } };

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

test('one run of each customer is active, even while it waits, and the others start in their order', async () => {
  const owner = await server.provision.user(app);
  const automation = await client.createAutomation({ workflow: waiting, concurrency: perCustomer, user: owner.id });
  const [a1, b1] = [await invoke(automation, 'a'), await invoke(automation, 'b')];
  // Jobs of runs that are invoked together may start in another order.
  await untilActive([a1, b1], [a1, b1]);
  const [a2, a3] = [await invoke(automation, 'a'), await invoke(automation, 'a')];
  await untilActive([a1, b1, a2, a3], [a1, b1]);
  const { body: held } = await client.call<Pending>('GET', `/automation_runs/${a3}`);
  assert.deepEqual(held.pending_for, { limit: 'concurrency', ahead: 1 });
  // It counts runs that a user may not see.
  const asUser = await server.api<Pending>('GET', `/api/v1/automation_runs/${a3}`, { token: owner.token });
  assert.deepEqual([asUser.status, asUser.body.pending_for], [200, undefined]);
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
  await until(async () => {
    const found = await Promise.all(runs.map(async (id) => (await client.run(id)).status));
    return found.filter((status) => status === 'running').length === 3;
  });
  const [one, text, ...others] = runs as [string, string, ...string[]];
  await end(one);
  await end(text);
  const [first = '', second = ''] = await Promise.all(
    others.map(async (id) => ((await client.run(id)).status === 'running' ? id : undefined)),
  ).then((active) => [...others].sort((a, b) => Number(active.includes(b)) - Number(active.includes(a))));
  await end(first);
  await end(second);
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
  // Each node is a commit, so runs without the limit would overlap.
  const nodes = Array.from({ length: 10 }, (_, at) => ({
    ...{ id: `n${at}`, kind: 'transform', value: at },
    ...(at < 9 ? { on_success: `n${at + 1}` } : {}),
  }));
  const automation = await client.createAutomation({
    workflow: graphOf(...nodes),
    concurrency: { key: 'n', limit },
  });
  // The times of runs are those of their decisions, which may wait for a commit. A deferred trigger runs in the commit.
  await server.db`create table turns (n integer, at timestamptz default clock_timestamp(), change integer)`;
  await server.db`
    create function note_turn() returns trigger language plpgsql as $$
    begin
      insert into turns (n, change)
      select (new.payload ->> 'n')::integer, case new.status when 'running' then 1 else -1 end
      where (new.status = 'running') <> (old.status = 'running');
      return null;
    end $$`;
  await server.db`
    create constraint trigger note_turn after update on automation_runs deferrable initially deferred
    for each row execute function note_turn()`;
  const keys = 3;
  const runs = await Promise.all(
    Array.from({ length: 60 }, (_, n) => client.invoke(automation.id, { payload: { n: n % keys } })),
  );
  for (const { id } of runs) assert.equal((await client.waitForEnd(id)).status, 'completed');
  await server.db`drop trigger note_turn on automation_runs`;
  const [most] = await server.db<[{ starts: number; active: number }]>`
    select sum(greatest(change, 0)) as starts, max(active) as active
    from (select change, sum(change) over (partition by n order by at) as active from turns) t`;
  assert.equal(most.starts, runs.length);
  assert.ok(most.active <= limit, `${most.active} runs of a value were active`);
});

test('a higher limit, or none, starts the runs that wait', async () => {
  const automation = await client.createAutomation({ workflow: waiting, concurrency: perCustomer });
  const runs = [await invoke(automation, 'a')];
  await untilActive(runs, runs);
  for (let n = 0; n < 3; n += 1) runs.push(await invoke(automation, 'a'));
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

test('`concurrency` and `rate` are refused without a workflow, and with members that are not right', async () => {
  const create = async (body: Record<string, unknown>) => {
    const refused = await client.call<ErrorBody>('POST', '/automations', { name: 'x', type: 'invoked', ...body });
    assert.equal(refused.status, 422, refused.text);
    return refused.body.error.fields?.[0]?.field;
  };
  const rate = { limit: 1, per: '1m' };
  assert.equal(await create({ concurrency: perCustomer }), 'concurrency');
  assert.equal(await create({ rate }), 'rate');
  const cases: [Record<string, unknown>, string][] = [
    [{ concurrency: { key: 'a..b', limit: 1 } }, 'concurrency.key'],
    [{ concurrency: { key: 'a', limit: 0 } }, 'concurrency.limit'],
    [{ rate: { ...rate, limit: 0 } }, 'rate.limit'],
    [{ rate: { ...rate, per: '0s' } }, 'rate.per'],
    [{ rate: { ...rate, per: '25h' } }, 'rate.per'],
    [{ rate: { ...rate, key: 'a.' } }, 'rate.key'],
    [{ rate: { ...rate, key: 'a' }, concurrency: perCustomer }, 'rate.key'],
  ];
  for (const [members, field] of cases) assert.equal(await create({ workflow: waiting, ...members }), field);
  const automation = await client.createAutomation({ workflow: waiting, rate });
  const changed = await client.call<ErrorBody>('PATCH', `/automations/${automation.id}`, { workflow: null });
  assert.equal(changed.status, 422, changed.text);
});

/** Moves the clock and does the server's check for due runs. */
async function pass(seconds: number): Promise<void> {
  offsetMs += seconds * 1_000;
  await server.server.work.ticker.tick();
}

const instant = graphOf({ id: 'a', kind: 'transform', value: 1 });
const statuses = (runs: readonly string[]) => Promise.all(runs.map(async (id) => (await client.run(id)).status));

test('a rate delays runs and drops none: they start in their order, also behind one that is cancelled', async () => {
  const automation = await client.createAutomation({
    ...{ workflow: instant, rate: { limit: 2, per: '30m' }, max_pending_runs: 5 },
  });
  const runs: string[] = [];
  for (let n = 0; n < 2; n++) {
    runs.push(await invoke(automation, n));
    await client.waitForEnd(runs[n] ?? '');
  }
  for (let n = 2; n < 7; n++) runs.push(await invoke(automation, n));
  const [, , third = '', fourth = '', ...rest] = runs as [string, string, ...string[]];
  // Two runs a half hour: the fifth that waits is in the third half hour after the first.
  const { body: last } = await client.call<Pending>('GET', `/automation_runs/${runs.at(-1)}`);
  const { body: began } = await client.call<{ started_at: string }>('GET', `/automation_runs/${runs[0]}`);
  const thirdRound = new Date(Date.parse(began.started_at) + 3 * 1_800_000).toISOString();
  assert.deepEqual(last.pending_for, { limit: 'rate', until: thirdRound, ahead: 4 });
  const refused = await client.call<ErrorBody>('POST', `/automations/${automation.id}/invoke`, {});
  assert.deepEqual([refused.status, refused.body.error.code], [429, 'rate_limited']);
  await pass(1_500);
  assert.deepEqual(await statuses([third, fourth]), ['pending', 'pending']);
  await client.call('POST', `/automation_runs/${third}/cancel`);
  await pass(301);
  await client.waitForEnd(fourth);
  await client.waitForEnd(rest[0] ?? '');
  assert.deepEqual(await statuses(rest.slice(1)), ['pending', 'pending']);
  await pass(1_801);
  for (const run of rest) assert.equal((await client.waitForEnd(run)).status, 'completed');
  const { body } = await client.call<{ rate: unknown }>('GET', `/automations/${automation.id}`);
  assert.deepEqual(body.rate, { limit: 2, per: '30m' });
});

test('a rate with a key counts each value, and a run that another limit delays stops no other', async () => {
  const keyed = await client.createAutomation({
    ...{ workflow: instant, rate: { limit: 1, per: '30m', key: 'customer.id' }, max_concurrent_runs: 1 },
  });
  const a1 = await invoke(keyed, 'a');
  await client.waitForEnd(a1);
  const [a2, b1] = [await invoke(keyed, 'a'), await invoke(keyed, 'b')];
  await client.waitForEnd(b1);
  assert.deepEqual(await statuses([a2]), ['pending']);
  const none = await client.call('PATCH', `/automations/${keyed.id}`, { rate: null });
  assert.deepEqual([none.status, none.body.rate], [200, undefined]);
  await client.waitForEnd(a2);
  const both = await client.createAutomation({
    ...{ workflow: waiting, rate: { limit: 3, per: '30m' }, concurrency: perCustomer },
  });
  const c1 = await invoke(both, 'c');
  await untilActive([c1], [c1]);
  const [c2, d1, e1, f1] = [
    await invoke(both, 'c'),
    await invoke(both, 'd'),
    await invoke(both, 'e'),
    await invoke(both, 'f'),
  ];
  await untilActive([c1, c2, d1, e1, f1], [c1, d1, e1]);
  await pass(1_801);
  await untilActive([c1, c2, d1, e1, f1], [c1, d1, e1, f1]);
  await end(c1);
  await untilActive([c2], [c2]);
});

test('many runs of two processes together never start faster than the rate, and all complete', async () => {
  const beside = await startTestServer({ beside: server, clock });
  const clients = [client, new AutomationsClient(beside, app)];
  const limit = 5;
  const automation = await client.createAutomation({ workflow: instant, rate: { limit, per: '30m', key: 'n' } });
  const runs = await Promise.all(
    Array.from({ length: 40 }, (_, n) =>
      clients[Math.floor(n / 2) % 2]?.invoke(automation.id, { payload: { n: n % 2 } }),
    ),
  );
  const find = () => server.db<{ n: number; startedAt: Date | null; status: string }[]>`
    select (payload ->> 'n')::integer as n, started_at, status from automation_runs
    where automation_id = ${parseId('automation', automation.id) ?? ''}`;
  for (let done = 1; done <= 4; done++) {
    await until(async () => (await find()).filter(({ status }) => status === 'completed').length === 10 * done);
    await pass(1_801);
    await beside.server.work.ticker.tick();
  }
  await beside.close();
  assert.equal(runs.length, 40);
  const starts = (await find()).map(({ n, startedAt }) => ({ n, at: startedAt?.getTime() ?? 0 }));
  for (const { n, at } of starts) {
    const count = starts.filter((one) => one.n === n && one.at > at - 1_800_000 && one.at <= at).length;
    assert.ok(count <= limit, `${count} runs of ${n} had started within half an hour`);
  }
});

test('the limits hold for runs of programs, which workers are offered when their turn comes', async () => {
  const worker = new ProgramWorker(client);
  const patiently = { wait_seconds: 30, lease_seconds: 3_600 };
  const started = async (automation: { id: string }, count: number) =>
    Promise.all(Array.from({ length: count }, async () => (await worker.take(automation.id, patiently)).run));
  const rated = await client.createAutomation({ workflow: programOf('x'), rate: { limit: 2, per: '30m' } });
  const runs: string[] = [];
  for (let n = 0; n < 4; n++) runs.push(await invoke(rated, n));
  assert.deepEqual((await started(rated, 2)).sort(), runs.slice(0, 2).sort());
  assert.equal((await worker.claim(rated.id)).status, 204);
  const next = worker.take(rated.id, patiently);
  await pass(1_801);
  assert.equal((await next).run, runs[2]);
  assert.equal((await worker.take(rated.id, patiently)).run, runs[3]);
  const keyed = await client.createAutomation({ workflow: programOf('x'), concurrency: perCustomer });
  const [a1, a2, b1] = [await invoke(keyed, 'a'), await invoke(keyed, 'a'), await invoke(keyed, 'b')];
  const work = await worker.take(keyed.id, patiently);
  assert.equal(work.run, a1);
  assert.equal((await worker.take(keyed.id, patiently)).run, b1);
  assert.equal((await worker.claim(keyed.id)).status, 204);
  const waitingForA = worker.take(keyed.id, patiently);
  await work.write([{ type: 'run_completed' }]);
  assert.equal((await waitingForA).run, a2);
});

test('the time limit of a run that continues another one does not count while it waits for its turn or a worker', async () => {
  const more = { timeout_seconds: 60, max_concurrent_runs: 1 };
  const two = graphOf({ id: 'a', kind: 'transform', value: 1, on_success: 'w' }, ...waiting.nodes);
  const graph = await client.createAutomation({ workflow: two, ...more });
  const program = await client.createAutomation({ workflow: programOf('x'), ...more });
  const worker = new ProgramWorker(client);
  const retry = async (run: string, from: unknown) => {
    const again = await client.call<{ id: string }>('POST', `/automation_runs/${run}/retry`, { from });
    assert.equal(again.status, 201, again.text);
    return again.body.id;
  };
  const { id: first } = await client.invoke(graph.id);
  await end(first);
  const { id: other } = await client.invoke(graph.id);
  await client.waitUntilWaiting(other);
  const later = await retry(first, { node: 'w' });
  await client.invoke(program.id);
  const failing = await worker.take(program.id);
  const steps = [started('a'), completed('a', 1), { type: 'run_failed', error: { code: 'x', message: 'No.' } }];
  await failing.write(steps);
  const again = await retry(failing.run, 'failure');

  // The other run has the same limit, which ends it.
  offsetMs += 61_000;
  await server.server.work.ticker.tick();
  await end(later);
  assert.equal((await client.run(later)).status, 'completed');
  const work = await worker.take(program.id, { lease_seconds: 600 });
  assert.equal(work.run, again);
  await server.server.work.ticker.tick();
  await work.write([{ type: 'run_completed' }]);
  assert.equal((await client.run(again)).status, 'completed');
});
