import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { WorkClaims } from '../../src/automations/engine/work-claims.ts';
import { openDatabase } from '../../src/db/database.ts';
import { parseId } from '../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { startTestServer } from '../support/server.ts';
import { SilentProxy } from '../support/silent-proxy.ts';
import { until } from '../support/until.ts';

const server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
const sessions = ['a', 'b', 'c'].map(() =>
  openDatabase(server.services.target, { poolSize: 1, applicationName: 'quarry-test' }),
);
after(async () => {
  for (const session of sessions) await session.end();
  await server.close();
});

async function startRun(): Promise<{ appId: string; id: string }> {
  const client = new AutomationsClient(server, await server.provision.app());
  const workflow = graphOf({ id: 'a', kind: 'trigger', on_success: 'b' }, { id: 'b', kind: 'complete', result: {} });
  const { id } = await client.invoke((await client.createAutomation({ workflow })).id);
  const [run] = await server.db<[{ appId: string; id: string }]>`
    select app_id, id from automation_runs where id = ${parseId('automationRun', id) ?? ''}`;
  return run;
}

test('workers that take over the work of a dead one side by side all get it', async () => {
  const run = await startRun();
  const commands = Array.from({ length: 300 }, (_, at) => `cmd_${at}`);
  await server.db`
    insert into automation_work_claims (app_id, run_id, command_id, worker)
    select ${run.appId}, ${run.id}, command, 'dead' from unnest(${commands}::text[]) command`;
  const claims = sessions.map((session, at) => new WorkClaims(session, `living ${at}`).forRun(run));
  const taken = await Promise.all(commands.map((command, at) => claims[at % claims.length]?.take(command)));
  assert.deepEqual(new Set(taken), new Set([true]));
  const again = await Promise.all(commands.map((command, at) => claims[(at + 1) % claims.length]?.take(command)));
  assert.deepEqual(new Set(again), new Set([false]));
});

test('a claim that the database carries out after its connection was lost does not keep others from the work', async () => {
  const run = await startRun();
  const proxy = await SilentProxy.open(server.services.target);
  const session = openDatabase(proxy.url, { poolSize: 1, applicationName: 'quarry-test' });
  const losing = new WorkClaims(session, 'losing');
  const [other] = sessions.map((own) => new WorkClaims(own, 'other').forRun(run));
  assert.ok(other);
  try {
    await server.db.begin(async (tx) => {
      await tx`select from automation_runs where app_id = ${run.appId} and id = ${run.id} for update`;
      const taken = assert.rejects(losing.forRun(run).take('lost'));
      await until(async () => (await waitingClaims()) > 0);
      proxy.break();
      await taken;
    });
    await until(async () => (await server.db`select from automation_work_claims where command_id = 'lost'`).count > 0);
    assert.equal(await losing.forRun(run).take('held'), true);
    assert.equal(await other.take('lost'), false, 'its worker is alive');
    await losing.releaseLost();
    assert.equal(await other.take('lost'), true);
    assert.equal(await other.take('held'), false);
  } finally {
    await session.end();
    await proxy.close();
  }
});

async function waitingClaims(): Promise<number> {
  const { count } = await server.db`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into automation_work_claims%'`;
  return count;
}
