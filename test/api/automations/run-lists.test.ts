import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { templates } from '../../../console/src/pages/automations/templates.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

type Summary = {
  id: string;
  automation: string;
  automation_name: string;
  status: string;
  waiting: boolean;
  created_at: string;
};
type Page = { data: Summary[]; has_more: boolean; after_cursor?: string };

let server: TestServer;
let world: TestTenants;
let client: AutomationsClient;

before(async () => {
  server = await startTestServer();
  world = await server.provision.world();
  client = new AutomationsClient(server, world.app);
});
after(() => server.close());

const finish = graphOf({ id: 'done', kind: 'complete', result: 1 });
const wait = graphOf(
  { id: 'w', kind: 'wait_for_signal', name: 'go', on_success: 'done' },
  { id: 'done', kind: 'complete', result: 1 },
);

async function list(query: Record<string, string> = {}, options = {}): Promise<Page> {
  const path = `/api/v1/automation_runs?${new URLSearchParams(query)}`;
  const page = await server.api<Page>('GET', path, { key: world.app.secretKey, ...options });
  assert.equal(page.status, 200, page.text);
  return page.body;
}

const idsOf = (page: Page) => page.data.map(({ id }) => id);

test('the runs of all automations are one list, newest first, read page by page without gaps', async () => {
  const tide = await client.createAutomation({ name: 'Tide tables', workflow: finish });
  const fees = await client.createAutomation({ name: 'Harbour fees', lookup_key: 'fees-of-the-day', workflow: finish });
  const runs: string[] = [];
  for (const automation of [tide, fees, tide, fees, tide]) runs.unshift((await client.invoke(automation.id)).id);
  for (const id of runs) await client.waitForEnd(id);
  const all = await list();
  assert.deepEqual(idsOf(all), runs);
  assert.equal(all.has_more, false);
  assert.deepEqual(all.data[0], {
    ...all.data[0],
    automation: tide.id,
    automation_name: 'Tide tables',
    waiting: false,
  });
  assert.ok(!('payload' in (all.data[0] ?? {})) && !('result' in (all.data[0] ?? {})));

  const read: string[] = [];
  for (let query: Record<string, string> = { limit: '2' }; ; ) {
    const page = await list(query);
    assert.ok(page.data.length <= 2);
    read.push(...idsOf(page));
    if (!page.has_more) break;
    query = { limit: '2', after_cursor: page.after_cursor ?? '' };
  }
  assert.deepEqual(read, runs);

  assert.deepEqual(idsOf(await list({ automation: tide.id })), [runs[0], runs[2], runs[4]]);
  assert.deepEqual(idsOf(await list({ automation: 'fees-of-the-day' })), [runs[1], runs[3]]);
  assert.deepEqual(idsOf(await list({ search: 'TIDE' })), [runs[0], runs[2], runs[4]]);
  assert.deepEqual(idsOf(await list({ search: 'of-the' })), [runs[1], runs[3]]);
  assert.deepEqual(idsOf(await list({ search: '%' })), []);
  assert.deepEqual(idsOf(await list({ search: runs[3] ?? '' })), [runs[3]]);
  const third = all.data[2]?.created_at ?? '';
  assert.deepEqual(idsOf(await list({ since: third })), runs.slice(0, 3));
  assert.deepEqual(idsOf(await list({ until: third })), runs.slice(3));
});

test('a run that only waits is listed as waiting and as running, a cancelled one as cancelled', async () => {
  const { id: automation } = await client.createAutomation({ name: 'Waits', workflow: wait });
  const { id } = await client.invoke(automation);
  await client.waitUntilWaiting(id);
  const waiting = await list({ automation, status: 'waiting' });
  assert.deepEqual(idsOf(waiting), [id]);
  assert.deepEqual(waiting.data[0], { ...waiting.data[0], status: 'running', waiting: true });
  assert.deepEqual(idsOf(await list({ automation, status: 'running' })), [id]);
  await client.call('POST', `/automation_runs/${id}/cancel`);
  assert.deepEqual(idsOf(await list({ automation, status: 'running' })), []);
  assert.deepEqual(idsOf(await list({ automation, status: 'waiting' })), []);
  assert.deepEqual(idsOf(await list({ automation, status: 'cancelled' })), [id]);
});

test('end users list runs that they invoked or own, and no filter shows them more', async () => {
  const workflow = finish;
  const open = await client.createAutomation({ name: 'Open to all', workflow });
  const mine = await client.createAutomation({ name: 'Owned', workflow, user: world.member.id });
  const someone = await server.provision.user(world.app);
  const hidden = await client.createAutomation({ name: 'Hidden', workflow, user: someone.id });
  const byKey = await client.invoke(open.id);
  const owned = await client.invoke(mine.id);
  const secret = await client.invoke(hidden.id);
  const asMember = { key: world.app.publishableKey, token: world.member.token };
  const path = `/api/v1/automations/${open.id}/invoke`;
  const invoked = await server.api<{ id: string }>('POST', path, { ...asMember, body: {} });
  assert.equal(invoked.status, 200, invoked.text);
  assert.deepEqual(idsOf(await list({}, asMember)), [invoked.body.id, owned.id]);
  assert.deepEqual(idsOf(await list({ automation: open.id }, asMember)), [invoked.body.id]);
  for (const query of [{ search: secret.id }, { search: byKey.id }, { search: 'Hidden' }, { automation: hidden.id }])
    assert.deepEqual(await list(query, asMember), { data: [], has_more: false });
  // A hidden automation and one that does not exist are the same.
  assert.deepEqual(await list({ automation: 'nobody-has-this' }, asMember), { data: [], has_more: false });
  assert.deepEqual(idsOf(await list({ after_cursor: secret.id }, asMember)), [owned.id]);
});

test('runs of another app and of a sandbox are only in their own lists', async () => {
  const sandbox = await server.provision.sandbox(world.app);
  const inside = new AutomationsClient(server, sandbox);
  const { id: automation } = await inside.createAutomation({ name: 'In the sandbox', workflow: finish });
  const run = await inside.invoke(automation);
  assert.deepEqual(idsOf(await list({}, { key: sandbox.secretKey })), [run.id]);
  assert.deepEqual(idsOf(await list({ search: run.id })), []);
  const other = await server.provision.app();
  assert.deepEqual(await list({}, { key: other.secretKey }), { data: [], has_more: false });
  assert.deepEqual(await list({ search: run.id }, { key: other.secretKey }), { data: [], has_more: false });
});

test('an invalid filter is refused with the name of the member', async () => {
  const wrong: [Record<string, string>, number, string][] = [
    [{ status: 'asleep' }, 422, 'status'],
    [{ limit: '0' }, 422, 'limit'],
    [{ since: 'yesterday' }, 422, 'since'],
    [{ until: '2024-02-30T25:00:00Z' }, 422, 'until'],
    [{ search: '' }, 422, 'search'],
  ];
  for (const [query, status, field] of wrong) {
    const path = `/api/v1/automation_runs?${new URLSearchParams(query)}`;
    const refused = await server.api<ErrorBody>('GET', path, { key: world.app.secretKey });
    assert.equal(refused.status, status, refused.text);
    assert.equal(refused.body.error.fields?.[0]?.field, field, refused.text);
  }
  const path = '/api/v1/automation_runs?after_cursor=atr_wrong';
  const refused = await server.api<ErrorBody>('GET', path, { key: world.app.secretKey });
  assert.equal(refused.status, 400);
  assert.equal(refused.body.error.code, 'invalid_cursor');
});

test('every version of a graph can be read, and a run names the version that it uses', async () => {
  const { id } = await client.createAutomation({ name: 'Changes', workflow: wait });
  const { id: runId } = await client.invoke(id);
  await client.call('PATCH', `/automations/${id}`, { workflow: finish });
  const versions = await client.call<{ data: { version: number; workflow: unknown }[] }>(
    'GET',
    `/automations/${id}/versions`,
  );
  assert.deepEqual(
    versions.body.data.map(({ version, workflow }) => ({ version, workflow })),
    [
      { version: 2, workflow: finish },
      { version: 1, workflow: wait },
    ],
  );
  const run = await client.call<{ workflow_version: number }>('GET', `/automation_runs/${runId}`);
  assert.equal(run.body.workflow_version, 1);
  const first = await client.call<{ workflow: unknown }>('GET', `/automations/${id}/versions/1`);
  assert.deepEqual(first.body.workflow, wait);
  for (const version of ['3', '0', 'x', '01', '99999999999']) {
    const missing = await client.call('GET', `/automations/${id}/versions/${version}`);
    assert.equal(missing.status, 404, missing.text);
  }
});

test('the text of an automation is checked with the line of each mistake, and nothing is saved', async () => {
  const check = (text: string) =>
    client.call<{ problems: { line: number; column: number; node?: string; message: string }[] }>(
      'POST',
      '/automations/check',
      { text },
    );
  const yaml = [
    'name: Hello',
    'type: invoked',
    'workflow:',
    '  kind: WorkflowGraph',
    '  version: 1',
    '  start_node: start',
    '  nodes:',
    '    - { id: start, kind: trigger, on_success: missing }',
  ].join('\n');
  const wrong = await check(yaml);
  assert.equal(wrong.status, 200, wrong.text);
  assert.deepEqual(
    wrong.body.problems.map(({ line, node }) => ({ line, node })),
    [{ line: 8, node: 'start' }],
  );
  assert.deepEqual((await check(yaml.replace(', on_success: missing', ''))).body.problems, []);
  assert.equal((await check('name: [')).body.problems[0]?.line, 1);
  assert.equal((await check('x'.repeat(262_145))).status, 422);
  const { body } = await client.call<{ data: { name: string }[] }>('GET', '/automations');
  assert.ok(body.data.every(({ name }) => name !== 'Hello'));
});

test('every template of the console’s editor is a valid automation', async () => {
  for (const { id, text } of templates) {
    const { body } = await client.call<{ problems: unknown[] }>('POST', '/automations/check', { text });
    assert.deepEqual(body.problems, [], id);
  }
  assert.ok(templates.length > 3);
});
