import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import { readGraph } from '../../src/automations/definitions/graph.ts';
import { foldJournal } from '../../src/automations/engine/fold.ts';
import { readEntry } from '../../src/automations/runs/store.ts';
import { parseId } from '../../src/lib/ids.ts';
import { startAutomationWorker } from '../support/automation-workers.ts';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import type { TestApp, TestUser } from '../support/provisioner.ts';
import { reportProgress } from '../support/rounds.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { startWatch } from '../support/speed.ts';

/*
 * Workers are killed at random moments while runs with waits, retries, signals, fan-outs and children are in
 * progress. `npm run crash` makes 50 kills and 500 runs; npm test makes a short round.
 */
const kills = Number(process.env.CRASH_KILLS ?? 2);
const runCount = Number(process.env.CRASH_RUNS ?? 15);
const workerCount = 2;
/** Far longer than a job of a killed worker waits for another one. */
const stalledMs = 300_000;

let server: TestServer;
let app: TestApp;
let user: TestUser;
const workers: ChildProcess[] = [];

before(async () => {
  server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
  app = await server.provision.app();
  user = await server.provision.user(app);
});
after(async () => {
  for (const worker of workers) worker.kill('SIGKILL');
  await server.close();
});

const flaky = '{{$random() < 0.3 ? $error("bad luck") : $run.id}}';
const child = graphOf(
  { id: 'nap', kind: 'wait', seconds: 0.2, on_success: 'note' },
  { id: 'note', kind: 'emit_event', name: 'child.noted', payload: { run: '{{$run.id}}' } },
);
const parent = graphOf(
  { id: 'start', kind: 'trigger', on_success: 'note' },
  { id: 'note', kind: 'kv_set', user: '{{$.user}}', key: 'start/{{$run.id}}', value: '1', on_success: 'try' },
  {
    ...{ id: 'try', kind: 'transform', value: flaky, retry: { max_attempts: 4, initial_seconds: 0.1, factor: 1 } },
    ...{ on_success: 'outside', on_error: 'outside' },
  },
  {
    ...{ id: 'outside', kind: 'http_request', method: 'GET', url: 'http://127.0.0.1:1/', timeout_seconds: 5 },
    ...{ on_success: 'read', on_error: 'read' },
  },
  {
    ...{ id: 'read', kind: 'extract', file: '{{$.file}}', destination_kind: 'storage', on_success: 'keep' },
    retry: { max_attempts: 5, initial_seconds: 0.1, factor: 1 },
  },
  {
    ...{ id: 'keep', kind: 'file_write', filename: '{{$run.id}}.txt', content_type: 'text/plain', data: 'aGk=' },
    on_success: 'each',
  },
  {
    ...{ id: 'each', kind: 'for_each', items: '[1..4]', concurrency: 2, on_success: 'both' },
    node: { id: 'item', kind: 'kv_set', user: '{{$.user}}', key: 'item/{{$run.id}}/{{$item}}', value: '{{$item}}' },
  },
  {
    ...{ id: 'both', kind: 'parallel', on_success: 'event' },
    nodes: [
      { id: 'sub', kind: 'run_automation', automation: 'child', payload: {} },
      { id: 'go', kind: 'wait_for_signal', name: 'go' },
    ],
  },
  { id: 'event', kind: 'emit_event', name: 'parent.done', payload: { run: '{{$run.id}}' }, on_success: 'done' },
  { id: 'done', kind: 'complete', result: { ok: true } },
);

async function startWorker(): Promise<ChildProcess> {
  const worker = await startAutomationWorker(server);
  workers.push(worker);
  return worker;
}

test('killed workers lose nothing and do nothing twice', { timeout: 1_800_000 }, async () => {
  const client = new AutomationsClient(server, app);
  await client.createAutomation({ lookup_key: 'child', workflow: child });
  const { id } = await client.createAutomation({ workflow: parent });
  const contents = Buffer.from('Otters hold hands.').toString('base64');
  const upload = { filename: 'a.txt', content_type: 'text/plain', data: contents };
  const file = (await client.call<{ id: string }>('POST', '/files', upload)).body.id;
  const living = new Set(await Promise.all(Array.from({ length: workerCount }, startWorker)));

  const ids: string[] = [];
  const invoke = (async () => {
    for (let n = 0; n < runCount; n++) {
      const run = await client.invoke(id, { payload: { user: user.id, file } });
      ids.push(run.id);
      const signalled = await client.call('POST', `/automation_runs/${run.id}/signal`, { name: 'go', payload: n });
      assert.equal(signalled.status, 200);
    }
  })();
  for (let kill = 0; kill < kills; kill++) {
    await new Promise((resolve) => setTimeout(resolve, randomInt(50, 800)));
    const [victim] = living;
    assert.ok(victim);
    living.delete(victim);
    victim.kill('SIGKILL');
    living.add(await startWorker());
    reportProgress(kill + 1, kills, `kills, ${ids.length} runs`);
  }
  await invoke;
  for (const run of ids) await ended(client, run);

  for (const run of ids) assert.deepEqual((await client.run(run)).result, { ok: true });
  await checkJournals();
  await checkEffects(ids);
});

/** Fails when nothing at all has happened for a while: no run has a new entry. */
async function ended(client: AutomationsClient, run: string): Promise<void> {
  let entries = -1;
  for (let still = startWatch(); ; ) {
    const { status } = await client.run(run);
    if (status !== 'pending' && status !== 'running') return;
    await new Promise((resolve) => setTimeout(resolve, 50));
    const [row] = await server.db<[{ entries: number }]>`select sum(sequence)::int as entries from automation_runs`;
    if (row.entries !== entries) [entries, still] = [row.entries, startWatch()];
    else if (still.passedMs() > stalledMs) assert.fail(`nothing happens any more: ${await describe(run)}`);
  }
}

async function describe(run: string): Promise<string> {
  const id = parseId('automationRun', run) ?? '';
  const { db } = server;
  const [rows, wakes, jobs, extractions, workers, last, unfinished] = await Promise.all([
    db`select id, status, sequence, waiting, wake_at, wake_timer, lease_until, parent_run_id from automation_runs
      where id = ${id} or parent_run_id = ${id}`,
    db`select * from automation_run_wakes limit 10`,
    db`select * from jobs where key is null or key not like 'recurring/%' limit 10`,
    db`select id, state, created_at, updated_at from extractions where state <> 'done' limit 10`,
    db`select * from job_workers limit 10`,
    db`select sequence, type, node_id, command_id, record from automation_run_entries where run_id = ${id}
      order by sequence desc limit 8`,
    db`select status, waiting, count(*) from automation_runs group by 1, 2`,
  ]);
  return JSON.stringify({ now: new Date(), rows, wakes, jobs, extractions, workers, last, unfinished }, undefined, 1);
}

/** Every journal folds without a gap to an ended run, and no command in it ends twice. */
async function checkJournals(): Promise<void> {
  const runs = await server.db<{ id: string; automationId: string; sequence: number; workflow: unknown }[]>`
    select r.id, r.automation_id, r.sequence, g.graph as workflow from automation_runs r
    join automation_graphs g on g.app_id = r.app_id and g.automation_id = r.automation_id and g.version = r.graph_version`;
  assert.equal(runs.length, 2 * runCount);
  for (const run of runs) {
    const entries = await server.db<Parameters<typeof readEntry>[0][]>`
      select * from automation_run_entries where run_id = ${run.id} order by sequence`;
    assert.equal(entries.length, run.sequence);
    const state = foldJournal(readGraph(run.workflow), entries.map(readEntry));
    assert.equal(state.status, 'completed');
    const ends = entries.filter(
      (entry) =>
        entry.type === 'node_completed' || (entry.type === 'node_failed' && entry.record.metadata?.will_retry !== true),
    );
    assert.equal(new Set(ends.map((entry) => entry.commandId)).size, ends.length);
    const starts = entries.filter((entry) => entry.type === 'node_started');
    const attempts = starts.map((entry) => `${entry.commandId}/${entry.record.metadata?.attempt}`);
    assert.equal(new Set(attempts).size, attempts.length);
  }
}

/** Each write, event and child happened exactly once: a second write would show in the entry's version. */
async function checkEffects(ids: string[]): Promise<void> {
  const written = await server.db<{ key: string; version: number }[]>`select key, version from kv_entries`;
  assert.equal(written.length, 5 * ids.length);
  assert.ok(written.every((entry) => entry.version === 1));
  const events = await server.db<{ name: string; run: string }[]>`select name, payload ->> 'run' as run from events`;
  for (const name of ['parent.done', 'child.noted']) {
    const of = events.filter((event) => event.name === name).map((event) => event.run);
    assert.equal(of.length, ids.length);
    assert.equal(new Set(of).size, ids.length);
  }
  const [read] = await server.db<[{ extractions: number; outputs: number; waited: number; files: number }]>`
    select (select count(*) from extractions where state = 'done') as extractions,
      (select count(*) from extraction_outputs) as outputs,
      (select count(distinct run_id) from automation_run_children) as waited,
      (select count(distinct filename) from files where filename like 'atr%' having count(*) = count(distinct filename)) as files`;
  assert.deepEqual(Object.values(read), [ids.length, ids.length, ids.length, ids.length]);
  const [children] = await server.db<[{ count: number; parents: number }]>`
    select count(*), count(distinct parent_run_id) as parents from automation_runs where parent_run_id is not null`;
  assert.deepEqual([children.count, children.parents], [ids.length, ids.length]);
}
