import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AutomationsClient, graphOf, type Run } from '../../support/automations.ts';
import type { TestResource, TestTenants } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

/* What a run may do that acts as an agent. */

let server: TestServer;
let world: TestTenants;
let client: AutomationsClient;
let agent: TestResource;

before(async () => {
  server = await startTestServer();
  world = await server.provision.world();
  client = new AutomationsClient(server, world.app);
  agent = await server.provision.agent(world.app, { org: world.org });
});
after(() => server.close());

const kvNodes: Record<string, Record<string, unknown>> = {
  kv_get: {},
  kv_set: { value: 'overwritten' },
  kv_delete: {},
};

for (const [kind, members] of Object.entries(kvNodes))
  test(`a ${kind} node of a run that acts as an agent fails with not_found for every user that it names`, async () => {
    const path = `/api/v1/kv/diary?user=${world.member.id}`;
    const key = world.app.secretKey;
    await server.api('PUT', '/api/v1/kv/diary', { key, body: { user: world.member.id, value: 'private' } });
    for (const user of [{ user: world.member.id }, { user: world.stranger.id }, {}]) {
      const { id } = await client.createAutomation({
        run_as_agent: agent.id,
        workflow: graphOf({ id: 'n', kind, key: 'diary', ...members, ...user }),
      });
      const run = await client.waitForEnd((await client.invoke(id)).id);
      assert.equal(run.status, 'failed');
      assert.deepEqual([run.error?.code, run.error?.node_id], ['not_found', 'n']);
      assert.equal(JSON.stringify(await client.journal(run.id)).includes('private'), false);
    }
    assert.equal((await server.api<{ value: string }>('GET', path, { key })).body.value, 'private');
  });

/** A run that a node of an agent's run has started. */
async function childOfAgent(child: Record<string, unknown>): Promise<Run> {
  const { id: childId } = await client.createAutomation({ org: world.org.id, ...child });
  const { id } = await client.createAutomation({
    run_as_agent: agent.id,
    workflow: graphOf({ id: 'c', kind: 'run_automation', automation: childId, payload: {} }),
  });
  await client.waitForEnd((await client.invoke(id)).id);
  const { body } = await client.call<{ data: Run[] }>('GET', `/automations/${childId}/runs`);
  const [run] = body.data;
  assert.ok(run);
  return run;
}

test('a retried child run acts as the agent that started it, and says so', async () => {
  const file = { filename: 'a.txt', content_type: 'text/plain', data: 'QQ==' };
  const first = await childOfAgent({ workflow: graphOf({ id: 'f', kind: 'file_write', ...file }) });
  assert.equal(first.invoked_by, agent.id);
  const retried = await client.call<Run>('POST', `/automation_runs/${first.id}/retry`);
  assert.equal(retried.status, 201);
  const second = await client.waitForEnd(retried.body.id);
  assert.equal(second.status, 'completed');
  assert.equal(second.invoked_by, agent.id);
  assert.equal(second.retried_from, first.id);
  const owners = [first, second].map((run) => (run.result as { agent?: string }).agent);
  assert.deepEqual(owners, [agent.id, agent.id]);
});

test('a retried child run of an agent reads no entries of users', async () => {
  const first = await childOfAgent({
    workflow: graphOf({ id: 'k', kind: 'kv_set', key: 'k', value: 'v', user: world.member.id }),
  });
  const retried = await client.call<Run>('POST', `/automation_runs/${first.id}/retry`);
  const second = await client.waitForEnd(retried.body.id);
  assert.deepEqual([first.error?.code, second.error?.code], ['not_found', 'not_found']);
});

test('a retried run stays as deep in its tree as the run before it', async () => {
  const first = await childOfAgent({ workflow: graphOf({ id: 't', kind: 'trigger' }) });
  const retried = await client.call<Run>('POST', `/automation_runs/${first.id}/retry`);
  await client.waitForEnd(retried.body.id);
  const rows = await server.db<{ depth: number }[]>`
    select depth from automation_runs order by created_at desc, id desc limit 1`;
  assert.equal(rows[0]?.depth, 1);
});

test('an agent starts no automation that only users or only secret keys may invoke', async () => {
  for (const invoke_auth of ['user', 'secret_key']) {
    const { id: childId } = await client.createAutomation({
      org: world.org.id,
      invoke_auth,
      workflow: graphOf({ id: 't', kind: 'trigger' }),
    });
    const { id } = await client.createAutomation({
      run_as_agent: agent.id,
      workflow: graphOf({ id: 'c', kind: 'run_automation', automation: childId, payload: {} }),
    });
    const run = await client.waitForEnd((await client.invoke(id)).id);
    assert.equal(run.error?.code, 'forbidden', invoke_auth);
  }
});
