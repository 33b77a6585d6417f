import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AutomationsClient } from '../../support/automations.ts';
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
