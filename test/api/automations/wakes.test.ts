import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type WakeOrder, wakeDueRuns } from '../../../src/automations/runs/wake-store.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* The table of times at which runs are due. The server's own checks find nothing: its clock stands still. */

let server: TestServer;
let client: AutomationsClient;
const clock = new ManualClock();

before(async () => {
  server = await startTestServer({ clock });
  client = new AutomationsClient(server, await server.provision.app());
});
after(() => server.close());

const environment = { worker: 'test', version: '0' };
const inTwoHours = () => new Date(clock.now().getTime() + 2 * 3_600_000);

async function startWaits(count: number): Promise<{ automationId: string; runs: string[] }> {
  const workflow = graphOf(
    { id: 'w', kind: 'wait', seconds: 3_600, on_success: 'done' },
    { id: 'done', kind: 'complete' },
  );
  const { id } = await client.createAutomation({ workflow });
  const started = await Promise.all(Array.from({ length: count }, () => client.invoke(id)));
  for (const run of started) await client.waitUntilWaiting(run.id);
  return { automationId: parseId('automation', id) ?? '', runs: started.map((run) => run.id) };
}

/** Runs whose time differs from the one in the table. */
async function countUnequal(): Promise<number> {
  const [{ count }] = await server.db<[{ count: number }]>`
    select count(*) as count from automation_runs r
    full join automation_run_wakes w on w.app_id = r.app_id and w.run_id = r.id
    where r.wake_at is distinct from w.wake_at`;
  return count;
}

test('the times of runs that wait, are cancelled, moved or deleted are in the table, and no others', async () => {
  const { automationId, runs } = await startWaits(4);
  const [{ count }] = await server.db<[{ count: number }]>`select count(*) as count from automation_run_wakes`;
  assert.equal(count, 4);
  assert.equal(await countUnequal(), 0);
  await client.call('POST', `/automation_runs/${runs[0]}/cancel`);
  assert.equal(await countUnequal(), 0);
  const moved = parseId('automationRun', runs[1] ?? '') ?? '';
  await server.db`update automation_runs set wake_at = ${inTwoHours()} where id = ${moved}`;
  assert.equal(await countUnequal(), 0);
  await server.db`delete from automation_runs where id = ${moved}`;
  assert.equal(await countUnequal(), 0);
  await server.db`delete from automations where id = ${automationId}`;
  const left = await server.db`
    select run_id from automation_run_wakes union all select run_id from automation_run_entries`;
  assert.equal(left.length, 0);
});

test('waking updates the rows of runs in place, without their indexes', async () => {
  const wake = async () => {
    await startWaits(10);
    // Their earlier states leave room in their pages, unless another session looks at one meanwhile.
    await server.db`vacuum automation_runs`;
    return server.db.begin(async (tx) => {
      const countUpdates = async () => {
        const [row] = await tx<[{ all: number; inPlace: number }]>`
          select n_tup_upd as all, n_tup_hot_upd as in_place from pg_stat_xact_user_tables
          where relname = 'automation_runs'`;
        return row;
      };
      const before = await countUpdates();
      assert.equal(await wakeDueRuns(tx, inTwoHours(), 10, environment), 10);
      const updates = await countUpdates();
      assert.equal(updates.all - before.all, 10);
      return updates.inPlace - before.inPlace;
    });
  };
  // With a column that an index has, no update would be in place.
  let inPlace = 0;
  for (let tries = 0; tries < 5 && inPlace < 10; tries++) inPlace = await wake();
  assert.equal(inPlace, 10);
});

test('a batch that is followed by others does not wait for the disk, the last one does', async () => {
  await startWaits(2);
  for (const [countMax, setting] of [
    [1, 'off'],
    [1_000, 'on'],
  ] as const) {
    await server.db.begin(async (tx) => {
      await tx`set local synchronous_commit = on`;
      assert.ok((await wakeDueRuns(tx, inTwoHours(), countMax, environment)) > 0);
      const [row] = await tx<[{ setting: string }]>`select current_setting('synchronous_commit') as setting`;
      assert.equal(row.setting, setting);
    });
  }
});

test('a run that another process changes while it is woken stays due until it is woken, once', async () => {
  const { runs } = await startWaits(1);
  const id = parseId('automationRun', runs[0] ?? '') ?? '';
  const changed = Promise.withResolvers<void>();
  const change = server.db.begin(async (tx) => {
    await tx`update automation_runs set updated_at = now() where id = ${id}`;
    changed.resolve();
    assert.equal(await wakeDueRuns(server.db, inTwoHours(), 10, environment), 0);
  });
  await changed.promise;
  await change;
  assert.equal(await countUnequal(), 0);
  const woken = await Promise.all(
    Array.from({ length: 4 }, () => wakeDueRuns(server.db, inTwoHours(), 10, environment)),
  );
  assert.deepEqual(
    woken.sort((a, b) => b - a),
    [1, 0, 0, 0],
  );
  assert.equal((await client.waitForEnd(runs[0] ?? '')).status, 'completed');
  const fired = await server.db`select from automation_run_entries where run_id = ${id} and type = 'timer_fired'`;
  assert.equal(fired.length, 1);
});

test('a time without a waiting run is removed, and wakes nothing', async () => {
  const { runs } = await startWaits(1);
  const id = parseId('automationRun', runs[0] ?? '') ?? '';
  await server.db`update automation_runs set wake_at = null where id = ${id}`;
  assert.equal(await countUnequal(), 1);
  await wakeDueRuns(server.db, inTwoHours(), 10, environment);
  assert.equal(await countUnequal(), 0);
  const [run] = await server.db<{ waiting: boolean }[]>`select waiting from automation_runs where id = ${id}`;
  assert.equal(run?.waiting, true);
});

test('a run looks again for work that it left to another process', async () => {
  const call = { id: 'call', kind: 'http_request', method: 'GET', url: 'http://127.0.0.1:1/', on_error: 'done' };
  const workflow = graphOf(
    { ...call, retry: { max_attempts: 2, initial_seconds: 3_600 } },
    { id: 'done', kind: 'complete' },
  );
  const run = await client.invoke((await client.createAutomation({ workflow })).id);
  await client.waitUntilWaiting(run.id);
  const commandId = (await client.journal(run.id)).find((entry) => entry.node_id === 'call')?.command_id ?? '';
  const stranger = await server.db.reserve();
  try {
    await stranger`select pg_advisory_lock(7130244, hashtext('stranger'))`;
    await server.db`
      insert into automation_work_claims (app_id, run_id, command_id, worker)
      select app_id, id, ${commandId}, 'stranger' from automation_runs where id = ${parseId('automationRun', run.id) ?? ''}`;
    clock.advance(3_600_000);
    await server.server.work.ticker.tick();
    await until(async () => (await server.db`select from jobs where task like 'advance_run%'`).count === 0);
    // The other process was never able to do the work, or has released it without a result.
    await server.db`delete from automation_work_claims`;
    clock.advance(60_000);
    await server.server.work.ticker.tick();
    assert.equal((await client.waitForEnd(run.id)).status, 'completed');
  } finally {
    await stranger`select pg_advisory_unlock(7130244, hashtext('stranger'))`;
    stranger.release();
  }
});

test('an idle process checks again when the next run is due, after a second at the latest', async () => {
  const { runs } = await startWaits(1);
  const id = parseId('automationRun', runs[0] ?? '') ?? '';
  const { ticker } = server.server.work;
  const now = clock.now().getTime();
  for (const [dueInMs, pauseMs] of [
    [600_000, 1_000],
    [400, 400],
    [1, 50],
  ] as const) {
    await server.db`update automation_runs set wake_at = ${new Date(now + dueInMs)} where id = ${id}`;
    assert.equal(await ticker.tick(), pauseMs);
  }
  clock.advance(1);
  await ticker.tick();
  assert.equal((await client.waitForEnd(runs[0] ?? '')).status, 'completed');
});

test('while due runs are woken, a process has urgent work', async () => {
  const { runs } = await startWaits(1);
  const id = parseId('automationRun', runs[0] ?? '') ?? '';
  const { ticker, urgentWork } = server.server.work;
  // Only the ticks of this test show.
  await ticker.stopTicking();
  const hasUrgentWork = async () => {
    let seen = false;
    let isOver = false;
    const ticked = ticker.tick().finally(() => {
      isOver = true;
    });
    while (!isOver) {
      seen ||= urgentWork() !== undefined;
      await setImmediate();
    }
    await ticked;
    return seen;
  };
  assert.equal(await hasUrgentWork(), false);
  await server.db`update automation_runs set wake_at = ${clock.now()} where id = ${id}`;
  assert.equal(await hasUrgentWork(), true);
  assert.equal(urgentWork(), undefined);
});

test('a flood is woken from both ends, and each of its runs once', async () => {
  await wakeDueRuns(server.db, inTwoHours(), 1_000, environment); // those of other tests
  const { runs } = await startWaits(8);
  const dueAt = (place: number) => new Date(clock.now().getTime() + 3_600_000 + place);
  const ids = runs.map((run) => parseId('automationRun', run) ?? '');
  for (const [place, id] of ids.entries())
    await server.db`update automation_runs set wake_at = ${dueAt(place)} where id = ${id}`;
  const left = async () => {
    const rows = await server.db<{ runId: string }[]>`select run_id from automation_run_wakes order by wake_at`;
    return rows.map(({ runId }) => ids.indexOf(runId));
  };
  assert.deepEqual(await left(), [0, 1, 2, 3, 4, 5, 6, 7]);
  const wake = (countMax: number, order: WakeOrder) =>
    wakeDueRuns(server.db, inTwoHours(), countMax, environment, order);
  assert.equal(await wake(2, 'longest due first'), 2);
  assert.equal(await wake(1, 'longest due last'), 1);
  assert.deepEqual(await left(), [2, 3, 4, 5, 6]);
  const woken = await Promise.all([wake(1_000, 'longest due first'), wake(1_000, 'longest due last')]);
  assert.equal(woken[0] + woken[1] + (await wake(1_000, 'longest due first')), 5);
  for (const run of runs) assert.equal((await client.waitForEnd(run)).status, 'completed');
  const [{ fired }] = await server.db<[{ fired: number }]>`
    select count(*) as fired from automation_run_entries where run_id = any(${ids}::uuid[]) and type = 'timer_fired'`;
  assert.equal(fired, 8);
});
