import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { production } from '../../src/db/database.ts';
import { decodeItems } from '../../src/ledger/encoding.ts';
import { listSegments } from '../../src/ledger/store.ts';
import { Secrets } from '../../src/tenancy/secrets.ts';
import { killInWrite } from '../support/kill-in-write.ts';
import { startKillableServer } from '../support/killable-server.ts';
import { verifyAll } from '../support/ledger.ts';
import { until } from '../support/until.ts';

const runCount = 300;
/** Kills of the server, each while it deletes runs, and the end of its sessions in every third. */
const rounds = Number(process.env.CRASH_ROUNDS ?? 3);

const server = await startKillableServer('retention');
after(() => server.close());
const { db, send, appId, secret } = server;

test('however often the server is killed while it deletes runs, each is whole, or gone and stated in the ledger', async () => {
  const scope = { appId, sandboxId: production };
  const nodes = [{ id: 'a', kind: 'file_write', filename: 'a', content_type: 'text/plain', data: 'YQ==' }];
  const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'a', nodes };
  const created = await send<{ id: string }>('POST', '/automations', { name: 'x', type: 'invoked', workflow });
  const automation = `/automations/${created.body.id}`;
  await send('POST', `${automation}/activate`);
  for (let run = 0; run < runCount; run += 1) await send('POST', `${automation}/invoke`, {});
  const countEnded = async () => (await db`select 1 from automation_runs where status = 'completed'`).length;
  await until(async () => (await countEnded()) === runCount);
  const made = new Set((await db<{ id: string }[]>`select id from automation_runs`).map(({ id }) => id));
  // A run for each day, up to so many days ago.
  await db`
      update automation_runs r set created_at = now() - make_interval(days => place::integer + 2),
        completed_at = now() - make_interval(days => place::integer + 2)
      from (select id, row_number() over (order by id) as place from automation_runs) o where o.id = r.id`;

  /**
   * Every run has its whole journal, or no trace and one statement. One snapshot of the database has all of it, because
   * a server may be deleting runs meanwhile. Returns how many are left.
   */
  const check = () =>
    db.begin('isolation level repeatable read read only', async (tx) => {
      const listed = (await listSegments(tx, scope, 0, 10_000))
        .filter(({ kind }) => kind === 'retention')
        .flatMap(({ list }) => decodeItems(list ?? Buffer.alloc(0)).map(({ id }) => id));
      assert.equal(new Set(listed).size, listed.length);
      const runs = await tx<{ id: string; sequence: number; entries: number }[]>`
        select r.id, r.sequence, (select count(*) from automation_run_entries e where e.run_id = r.id) as entries
        from automation_runs r`;
      const left = new Set(runs.map(({ id }) => id));
      assert.deepEqual(new Set(listed), made.difference(left));
      for (const { sequence, entries } of runs) assert.equal(entries, sequence);
      const orphans = await tx`
        select 1 from automation_run_entries e where not exists (select from automation_runs r where r.id = e.run_id)`;
      assert.equal(orphans.length, 0);
      const files = await tx<{ runId: string | null }[]>`
        select n.run_id from files f left join automation_run_files n on n.file_id = f.id`;
      assert.deepEqual(files.map(({ runId }) => runId).sort(), [...left].sort(), 'a run goes with its file');
      return left.size;
    });
  const prune = async () => {
    await db`select add_job('sweep_runs', '{}')`;
  };
  const keep = (days: number) => send('PATCH', automation, { retention: { days, files: true } });

  await keep(runCount - 20);
  // Its statement is written, and nothing is deleted yet.
  await killInWrite(db, server.serve, { table: 'run_anchors', column: 'removed_in' }, prune);
  assert.equal(await check(), runCount);
  await server.restart();
  await prune();
  await until(async () => (await countEnded()) < runCount);

  for (let round = 1; round <= rounds; round += 1) {
    const before = await check();
    await keep(Math.max(1, before - 30));
    await prune();
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
    if (round % 3 === 0)
      await db`
          select pg_terminate_backend(pid) from pg_stat_activity
          where application_name = 'quarry' and datname = current_database()`;
    else {
      await server.serve.kill();
      const sessions = () => db`
          select 1 from pg_stat_activity where application_name = 'quarry' and datname = current_database()`;
      await until(async () => (await sessions()).length === 0);
      await check();
      await server.restart();
    }
  }
  await keep(50);
  await prune();
  await until(async () => (await countEnded()) <= 50);
  await check();
  await send('GET', '/ledger');
  assert.deepEqual((await verifyAll(db, new Secrets(secret), scope)).problems, []);
});
