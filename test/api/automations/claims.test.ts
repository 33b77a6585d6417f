import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AutomationsClient } from '../../support/automations.ts';
import { ProgramWorker, programOf } from '../../support/programs.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let client: AutomationsClient;
let offsetMs = 0;

before(async () => {
  server = await startTestServer({ clock: { now: () => new Date(Date.now() + offsetMs) } });
  client = new AutomationsClient(server, await server.provision.app());
});
after(() => server.close());

test('a report with a lost claim on a run without a workflow is 409, and without a claim as before', async () => {
  const { id } = await client.createAutomation({});
  const { id: run } = await client.invoke(id);
  const first = await client.call<{ claim: string }>('POST', `/automations/${id}/claim`, { lease_seconds: 5 });
  assert.match(first.body.claim, /^clm_/);
  offsetMs += 6_000;
  await server.server.work.ticker.tick();
  const lost = { status: 'completed', claim: first.body.claim };
  const pending = await client.call<{ error: { code: string } }>('POST', `/automation_runs/${run}/status`, lost);
  assert.deepEqual([pending.status, pending.body.error.code], [409, 'claim_lost']);
  const second = await client.call<{ claim: string }>('POST', `/automations/${id}/claim`, { lease_seconds: 5 });
  assert.equal((await client.call('POST', `/automation_runs/${run}/status`, lost)).status, 409);
  const held = { status: 'running', claim: second.body.claim };
  assert.equal((await client.call('POST', `/automation_runs/${run}/status`, held)).status, 200);
  assert.equal((await client.call('POST', `/automation_runs/${run}/status`, { status: 'completed' })).status, 200);
});

test('expired claims in an app that is being moved keep no other app from its own', async () => {
  const moving = await server.provision.app();
  const mover = new AutomationsClient(server, moving);
  await mover.invoke((await mover.createAutomation({})).id);
  await server.db`
    insert into automation_runs (app_id, id, sandbox_id, automation_id, type, status, payload, lease_until)
    select app_id, gen_random_uuid(), sandbox_id, automation_id, type, 'running', payload, now() - interval '1 hour'
    from automation_runs, generate_series(1, 1000) where app_id = ${moving.app.uuid}`;
  const { id } = await client.createAutomation({});
  const { id: run } = await client.invoke(id);
  await client.call('POST', `/automations/${id}/claim`, { lease_seconds: 5 });
  await server.db`
    insert into app_fences (app_id, move_id, side, frozen)
    values (${moving.app.uuid}, gen_random_uuid(), 'target', true)`;
  try {
    offsetMs += 6_000;
    await server.server.work.ticker.tick();
    assert.equal((await client.run(run)).status, 'pending');
  } finally {
    await server.db`delete from app_fences where app_id = ${moving.app.uuid}`;
  }
});

test('an automation of another app or sandbox is 422 in a claim, like a missing one, and its run 404', async () => {
  const { id } = await client.createAutomation({ workflow: programOf('a') });
  const { id: run } = await client.invoke(id);
  const other = new AutomationsClient(server, await server.provision.app());
  const refused = await new ProgramWorker(other).claim(id);
  assert.equal(refused.status, 422);
  const claimed = await new ProgramWorker(client).take(id);
  for (const path of ['entries', 'claimed_journal']) {
    const more = path === 'entries' ? { after_sequence: 1, entries: [] } : { after_cursor: 'x' };
    const hidden = await other.call('POST', `/automation_runs/${run}/${path}`, {
      claim: claimed.claimed.claim,
      ...more,
    });
    assert.equal(hidden.status, 404);
  }
});
