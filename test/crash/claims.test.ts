import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { WorkClaims } from '../../src/automations/engine/work-claims.ts';
import { openDatabase } from '../../src/db/database.ts';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { startTestServer } from '../support/server.ts';

const server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
const sessions = ['a', 'b', 'c'].map(() =>
  openDatabase(server.services.target, { poolSize: 1, applicationName: 'quarry-test' }),
);
after(async () => {
  for (const session of sessions) await session.end();
  await server.close();
});

test('workers that take over the work of a dead one side by side all get it', async () => {
  const client = new AutomationsClient(server, await server.provision.app());
  const workflow = graphOf({ id: 'a', kind: 'trigger', on_success: 'b' }, { id: 'b', kind: 'complete', result: {} });
  await client.invoke((await client.createAutomation({ workflow })).id);
  const [run] = await server.db<[{ appId: string; id: string }]>`select app_id, id from automation_runs`;
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
