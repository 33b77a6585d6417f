import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf, type Run } from '../../support/automations.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let world: TestTenants;
let client: AutomationsClient;

before(async () => {
  server = await startTestServer();
  world = await server.provision.world();
  client = new AutomationsClient(server, world.app);
});
after(() => server.close());

const invoked = { name: 'x', type: 'invoked' };
const graph = graphOf({ id: 'a', kind: 'trigger' });

test('an automation is created, read, listed, changed and deleted', async () => {
  const created = await client.call('POST', '/automations', {
    ...invoked,
    lookup_key: 'crud',
    workflow: graph,
    input_schema: { type: 'object' },
    metadata: { a: 1 },
  });
  assert.equal(created.status, 201);
  const { id } = created.body as { id: string };
  assert.match(id, /^aut_/);
  assert.deepEqual(
    [created.body.status, created.body.workflow, created.body.metadata, created.body.timezone],
    ['draft', graph, { a: 1 }, 'UTC'],
  );
  for (const name of [id, id.replace('aut_', 'auto_'), 'crud'])
    assert.equal((await client.call('GET', `/automations/${name}`)).body.id, id);
  const listed = await client.call<{ data: { id: string }[]; total_entries: number }>(
    'GET',
    '/automations?type=invoked',
  );
  assert.ok(listed.body.data.some((one) => one.id === id));
  const changed = await client.call('PATCH', '/automations/crud', {
    description: 'd',
    lookup_key: null,
    workflow: null,
  });
  assert.deepEqual(
    [changed.status, changed.body.description, changed.body.lookup_key, changed.body.workflow],
    [200, 'd', undefined, null],
  );
  assert.equal((await client.call('PATCH', `/automations/${id}`, {})).body.description, 'd');
  assert.equal((await client.call('DELETE', `/automations/${id}`)).status, 204);
  assert.equal((await client.call('GET', `/automations/${id}`)).status, 404);
});

test('an invalid input_schema is refused with the path and the keyword of its mistake', async () => {
  const schemas: [Record<string, unknown>, RegExp][] = [
    [{ properties: { age: { type: 'nonsense' } } }, /at \/properties\/age\/type: must be equal to one of .*integer/],
    [{ properties: { age: { minimum: 'one' } } }, /at \/properties\/age\/minimum: must be number/],
    [{ items: { $ref: '#/$defs/none' } }, /at \/items\/\$ref: can't resolve reference #\/\$defs\/none/],
    [{ properties: { 'a/b': { pattern: '(' } } }, /at \/properties\/a~1b\/pattern: Invalid regular expression/],
    [{ required: 'name' }, /at \/required: must be array/],
  ];
  for (const [input_schema, message] of schemas) {
    const refused = await client.call<ErrorBody>('POST', '/automations', { ...invoked, input_schema });
    assert.equal(refused.status, 422, refused.text);
    assert.match(refused.body.error.message, message);
  }
});

test('invalid members are refused by name', async () => {
  const cases: [Record<string, unknown>, string][] = [
    [{ type: 'invoked' }, 'name'],
    [{ ...invoked, type: 'other' }, 'type'],
    [{ ...invoked, colour: 1 }, 'colour'],
    [{ ...invoked, workflow: { ...graph, nodes: [{ id: 'a', kind: 'magic' }] } }, 'workflow.nodes.0.kind'],
    [{ ...invoked, workflow: {} }, 'workflow.kind'],
    [{ ...invoked, input_schema: { type: 'nonsense' } }, 'input_schema'],
    [{ ...invoked, schedule: '* * * * *' }, 'schedule'],
    [{ ...invoked, trigger: 'x' }, 'trigger'],
    [{ name: 'x', type: 'trigger' }, 'trigger'],
    [{ name: 'x', type: 'trigger', trigger: 'x', filter: '1 +' }, 'filter'],
    [{ name: 'x', type: 'scheduled' }, 'schedule'],
    [{ name: 'x', type: 'scheduled', schedule: '* * *' }, 'schedule'],
    [{ name: 'x', type: 'scheduled', schedule: '* * * * *', timezone: 'Moon' }, 'timezone'],
    [{ ...invoked, run_as_user: 'usr_0000000000000000000000' }, 'run_as_user'],
    [{ ...invoked, run_as_user: world.stranger.id }, 'run_as_user'],
    [{ ...invoked, org: world.org.id.replace('org_', 'usr_') }, 'org'],
    [{ ...invoked, max_concurrent_runs: 0 }, 'max_concurrent_runs'],
  ];
  for (const [body, field] of cases) {
    const answer = await client.call<ErrorBody>('POST', '/automations', body);
    assert.equal(answer.status, 422, answer.text);
    assert.equal(answer.body.error.fields[0]?.field, field, answer.text);
  }
  const named = await client.call<ErrorBody>('POST', '/automations', {
    ...invoked,
    workflow: graphOf({ id: 'fetch', kind: 'http_request', method: 'GET', url: '{{1 +}}' }),
  });
  assert.deepEqual(named.body.error.fields, [
    {
      field: 'workflow.nodes.0.url',
      message: 'node "fetch": does not parse: Unexpected end of expression at character 3 in "1 +"',
    },
  ]);
});

test('a lookup key is unique in the app, and end users manage nothing', async () => {
  await client.createAutomation({ lookup_key: 'once', workflow: graph });
  const twice = await client.call<ErrorBody>('POST', '/automations', { ...invoked, lookup_key: 'once' });
  assert.deepEqual([twice.status, twice.body.error.code], [422, 'already_exists']);
  const user = { key: world.app.publishableKey, token: world.member.token };
  for (const [method, path] of [
    ['GET', '/automations'],
    ['POST', '/automations'],
    ['POST', '/events'],
    ['GET', '/secrets'],
  ] as const) {
    const body = method === 'POST' ? { body: {} } : {};
    const answer = await server.api(method, `/api/v1${path}`, { ...user, ...body });
    assert.ok([403, 422].includes(answer.status), `${path} ${answer.status}`);
  }
});

test('only a running automation of type invoked can be invoked, by allowed callers, with a valid payload', async () => {
  const draft = await client.call<{ id: string }>('POST', '/automations', { ...invoked, workflow: graph });
  const refused = await client.call<ErrorBody>('POST', `/automations/${draft.body.id}/invoke`, {});
  assert.equal(refused.status, 422);
  assert.match(refused.body.error.message, /draft/);

  const scheduled = await client.createAutomation({ type: 'scheduled', schedule: '0 0 1 1 *', workflow: graph });
  assert.equal((await client.call('POST', `/automations/${scheduled.id}/invoke`, {})).status, 422);
  assert.equal((await client.call('POST', '/automations/nobody/invoke', {})).status, 404);

  const schema = { type: 'object', required: ['bug'], properties: { bug: { type: 'integer' } } };
  const typed = await client.createAutomation({ workflow: graph, input_schema: schema });
  const unfit = await client.call<ErrorBody>('POST', `/automations/${typed.id}/invoke`, { payload: { bug: 'x' } });
  assert.deepEqual(unfit.body.error.fields, [{ field: 'payload.bug', message: 'must be integer' }]);
  const missing = await client.call<ErrorBody>('POST', `/automations/${typed.id}/invoke`, {});
  assert.deepEqual(missing.body.error.fields, [{ field: 'payload.bug', message: 'is missing' }]);

  const byUser = (id: string) =>
    server.api('POST', `/api/v1/automations/${id}/invoke`, {
      key: world.app.publishableKey,
      token: world.member.token,
      body: { payload: { bug: 1 } },
    });
  assert.equal((await byUser(typed.id)).status, 200);
  const server403 = await client.createAutomation({ workflow: graph, invoke_auth: 'secret_key' });
  assert.equal((await byUser(server403.id)).status, 403);
  const user403 = await client.createAutomation({ workflow: graph, invoke_auth: 'user' });
  assert.equal((await client.call('POST', `/automations/${user403.id}/invoke`, {})).status, 403);
  assert.equal((await byUser(user403.id)).status, 200);
  const elsewhere = await client.createAutomation({ workflow: graph, org: world.otherOrg.id });
  assert.equal((await byUser(elsewhere.id)).status, 404);

  const participants = { reviewer: 'agt_0000000000000000000000' };
  const unknown = await client.call<ErrorBody>('POST', `/automations/${typed.id}/invoke`, {
    payload: { bug: 1 },
    participants,
  });
  assert.equal(unknown.body.error.fields[0]?.field, 'participants.reviewer');
  const agent = await server.provision.agent(world.app, { org: world.org });
  const run = await client.invoke(typed.id, { payload: { bug: 1 }, participants: { reviewer: agent.id } });
  assert.deepEqual((run as Run & { participants: unknown }).participants, { reviewer: agent.id });
  const alias = agent.id.replace('agt_', 'agi_');
  const aliased = await client.invoke(typed.id, { payload: { bug: 1 }, participants: { reviewer: alias } });
  assert.deepEqual((aliased as Run & { participants: unknown }).participants, { reviewer: agent.id });
});

test('a run is visible to its invoker and to callers who can see its automation, and to no one else', async () => {
  const mine = await client.createAutomation({ workflow: graph });
  const asUser = (
    user: { token: string },
    method: string,
    path: string,
    body?: unknown,
    key = world.app.publishableKey,
  ) =>
    server.api<Run & ErrorBody>(method, `/api/v1${path}`, {
      key,
      token: user.token,
      ...(body === undefined ? {} : { body }),
    });
  const { body: run } = await asUser(world.member, 'POST', `/automations/${mine.id}/invoke`, { payload: { n: 1 } });
  await client.waitForEnd(run.id);
  assert.equal((await asUser(world.member, 'GET', `/automation_runs/${run.id}`)).status, 200);
  assert.equal((await asUser(world.admin, 'GET', `/automation_runs/${run.id}`)).status, 404);
  assert.equal((await asUser(world.admin, 'GET', `/automation_runs/${run.id}/journal`)).status, 404);
  assert.equal((await asUser(world.admin, 'GET', `/automation_runs/${run.id}/stream`)).status, 404);
  const strange = await asUser(
    world.stranger,
    'GET',
    `/automation_runs/${run.id}`,
    undefined,
    world.otherApp.publishableKey,
  );
  assert.equal(strange.status, 404);

  const orgs = await client.createAutomation({ workflow: graph, org: world.org.id });
  const { id: orgRun } = await client.invoke(orgs.id, { payload: { secret: 'x' } });
  await client.waitForEnd(orgRun);
  assert.equal((await asUser(world.viewer, 'GET', `/automation_runs/${orgRun}`)).status, 200);
  assert.equal((await asUser(world.otherUser, 'GET', `/automation_runs/${orgRun}`)).status, 404);
  type Page = { data: { record: Record<string, unknown> }[] };
  const withheld = (await asUser(world.viewer, 'GET', `/automation_runs/${orgRun}/journal`)).body as unknown as Page;
  assert.ok(withheld.data.length > 0);
  for (const entry of withheld.data)
    assert.deepEqual([entry.record.payload, entry.record.context], [undefined, undefined]);
  const own = (await asUser(world.member, 'GET', `/automation_runs/${run.id}/journal`)).body as unknown as Page;
  assert.deepEqual(own.data[0]?.record.payload, { n: 1 });
});

test('a run acts as its configured identity, with exactly its rights', async () => {
  const write = { id: 'w', kind: 'kv_set', key: 'who', value: 'me' };
  const asMember = await client.createAutomation({ run_as_user: world.member.id, workflow: graphOf(write) });
  const run = await client.waitForEnd((await client.invoke(asMember.id)).id);
  assert.equal((run.result as { user: string } | undefined)?.user, world.member.id);
  const invokedBy = await client.createAutomation({ workflow: graphOf(write) });
  const answer = await server.api<Run>('POST', `/api/v1/automations/${invokedBy.id}/invoke`, {
    key: world.app.publishableKey,
    token: world.viewer.token,
    body: {},
  });
  const byViewer = await client.waitForEnd(answer.body.id);
  assert.equal((byViewer.result as { user: string } | undefined)?.user, world.viewer.id);
});

test('an event starts each automation that listens and whose filter passes, once', async () => {
  const all = await client.createAutomation({ type: 'trigger', trigger: 'order.paid', workflow: graph });
  const large = await client.createAutomation({
    type: 'trigger',
    trigger: 'order.paid',
    filter: '$.total > 100',
    workflow: graph,
  });
  const broken = await client.createAutomation({
    type: 'trigger',
    trigger: 'order.paid',
    filter: '$error("x")',
    workflow: graph,
  });
  const paused = await client.createAutomation({ type: 'trigger', trigger: 'order.paid', workflow: graph });
  await client.call('POST', `/automations/${paused.id}/pause`);
  const runsOf = async (id: string) => (await client.call<{ data: Run[] }>('GET', `/automations/${id}/runs`)).body.data;
  const emitted = await client.call<{ id: string }>('POST', '/events', { name: 'order.paid', payload: { total: 150 } });
  assert.equal(emitted.status, 201);
  assert.match(emitted.body.id, /^evt_/);
  await client.call('POST', '/events', { name: 'order.paid', payload: { total: 5 } });
  // A filter whose turn is taken is left to a job of its own.
  const numbers = async () => Promise.all([all, broken, large].map(async ({ id }) => (await runsOf(id)).length));
  await waitUntil(async () => String(await numbers()) === '2,2,1');
  const [run] = await runsOf(large.id);
  assert.ok(run);
  assert.equal((await runsOf(large.id)).length, 1);
  const ended = await client.waitForEnd(run.id);
  assert.deepEqual(ended.payload, { total: 150 });
  assert.deepEqual(ended.result, { trigger: 'order.paid', payload: { total: 150 } });
  assert.equal(ended.event_id, emitted.body.id);
  assert.equal((await runsOf(paused.id)).length, 0);
  assert.equal((await runsOf(broken.id))[0]?.error?.code, 'filter_failed');
  const stream = `/api/v1/automation_runs/${run.id}/stream`;
  const refused = await server.api<ErrorBody>('GET', stream, { key: world.app.secretKey });
  assert.equal(refused.status, 404);
  assert.match(refused.body.error.message, /GET \/api\/v1\/automation_runs\/\{automation_run\}\/journal/);
});

test('a chain of runs that start each other stops at depth 8 with a failed run', async () => {
  const { id } = await client.createAutomation({
    type: 'trigger',
    trigger: 'again',
    workflow: graphOf({ id: 'e', kind: 'emit_event', name: 'again', payload: { n: '{{$.payload.n + 1}}' } }),
  });
  await client.call('POST', '/events', { name: 'again', payload: { n: 0 } });
  const runs = async () => (await client.call<{ data: Run[] }>('GET', `/automations/${id}/runs`)).body.data;
  await waitUntil(async () => (await runs()).some((run) => run.status === 'failed'));
  const all = await runs();
  assert.equal(all.length, 9);
  assert.equal(all[0]?.error?.code, 'event_depth');
});

test('the end of a run is also an event', async () => {
  const { id: listener } = await client.createAutomation({
    type: 'trigger',
    trigger: 'automation_run.failed',
    workflow: graph,
  });
  const run = await client.runGraph(graphOf({ id: 'f', kind: 'fail', message: 'x' }));
  const runs = async () => (await client.call<{ data: Run[] }>('GET', `/automations/${listener}/runs`)).body.data;
  await waitUntil(async () => (await runs()).some((one) => (one.payload as { run: string }).run === run.id));
  await client.call('DELETE', `/automations/${listener}`);
});

test('a due schedule starts one run for the latest missed tick, however often it is checked', async () => {
  // The next tick is half an hour away, so that none falls into the test.
  const schedule = `${(new Date().getUTCMinutes() + 30) % 60} * * * *`;
  const { id } = await client.createAutomation({ type: 'scheduled', schedule, workflow: graph });
  await server.db`update automations set next_tick_at = now() - interval '26 hours' where type = 'scheduled' and schedule = ${schedule}`;
  const runs = async () => (await client.call<{ data: Run[] }>('GET', `/automations/${id}/runs`)).body.data;
  await waitUntil(async () => (await runs()).length === 1);
  const [run] = await runs();
  assert.ok(run);
  const ended = await client.waitForEnd(run.id);
  const at = (ended.payload as { scheduled_at: string }).scheduled_at;
  assert.deepEqual(ended.result, { trigger: 'workflow.scheduled', payload: { scheduled_at: at } });
  assert.ok(Date.now() - Date.parse(at) < 3_700_000);
  const next = (await client.call<{ next_run_at: string }>('GET', `/automations/${id}`)).body.next_run_at;
  assert.ok(Date.parse(next) > Date.now());
  assert.equal((await runs()).length, 1);
});

test('a schedule whose time zone is no longer known fails its run, and delays no other schedule', async () => {
  const schedule = `${(new Date().getUTCMinutes() + 30) % 60} * * * *`;
  const create = () => client.createAutomation({ type: 'scheduled', schedule, workflow: graph });
  const [lost, kept] = [(await create()).id, (await create()).id];
  await server.db`
    update automations set next_tick_at = now() - interval '26 hours' + (id <> ${parseId('automation', lost) ?? ''})::int * interval '1 hour',
      timezone = case when id = ${parseId('automation', lost) ?? ''} then 'Mars/Base' else timezone end
    where id = any(${[lost, kept].map((id) => parseId('automation', id) ?? '')}::uuid[])`;
  const runs = async (id: string) => (await client.call<{ data: Run[] }>('GET', `/automations/${id}/runs`)).body.data;
  await waitUntil(async () => (await runs(kept)).length === 1);
  await waitUntil(async () => (await runs(lost)).length === 1);
  const [run] = await runs(lost);
  assert.deepEqual([run?.status, run?.error?.code], ['failed', 'invalid_schedule']);
  const { body } = await client.call<{ next_run_at: string | null }>('GET', `/automations/${lost}`);
  assert.equal(body.next_run_at ?? undefined, undefined);
});

test('an external worker claims runs, renews, reports, and loses a claim that it does not renew', async () => {
  const { id } = await client.createAutomation({ workflow: null });
  const claim = (lease = 60) => client.call<Run>('POST', `/automations/${id}/claim`, { lease_seconds: lease });
  const report = (run: string, body: Record<string, unknown>) =>
    client.call<Run & ErrorBody>('POST', `/automation_runs/${run}/status`, body);
  assert.equal((await claim()).status, 204);
  const first = await client.invoke(id, { payload: { n: 1 } });
  const second = await client.invoke(id);
  assert.equal((await report(first.id, { status: 'completed' })).status, 409);
  const claimed = await claim();
  assert.deepEqual([claimed.status, claimed.body.id, claimed.body.status], [200, first.id, 'running']);
  assert.deepEqual(claimed.body.payload, { n: 1 });
  assert.deepEqual(await client.journalPage(first.id), { journal: null, data: [], has_more: false });
  assert.equal((await report(first.id, { status: 'running' })).status, 200);
  assert.equal((await report(first.id, { status: 'completed', error: { code: 'x', message: 'y' } })).status, 422);
  const done = await report(first.id, { status: 'completed', result: { ok: true } });
  assert.deepEqual([done.body.status, done.body.result], ['completed', { ok: true }]);
  const late = await report(first.id, { status: 'failed' });
  assert.equal(late.status, 409);
  assert.match(late.body.error.message, /completed/);

  assert.equal((await claim()).body.id, second.id);
  assert.equal((await claim()).status, 204);
  await server.db`update automation_runs set lease_until = now() - interval '1 second' where status = 'running' and lease_until is not null`;
  await waitUntil(async () => (await client.run(second.id)).status === 'pending');
  assert.equal((await claim()).body.id, second.id);
  const failed = await report(second.id, { status: 'failed', error: { code: 'broke', message: 'It broke.' } });
  assert.deepEqual(failed.body.error, { code: 'broke', message: 'It broke.' });
  for (const [body, result] of [
    [{ result: null }, undefined],
    [{}, {}],
  ]) {
    const { id: third } = await client.invoke(id);
    await claim();
    const ended = await report(third, { status: 'completed', ...body });
    assert.deepEqual([ended.body.status, ended.body.result], ['completed', result]);
  }

  const graphs = await client.createAutomation({ workflow: graph });
  assert.equal((await client.call('POST', `/automations/${graphs.id}/claim`, { lease_seconds: 5 })).status, 409);
});

test('a run that waits for an external worker can be cancelled, claimed or not', async () => {
  const { id } = await client.createAutomation({ workflow: null });
  const runs = [await client.invoke(id), await client.invoke(id)];
  await client.call('POST', `/automations/${id}/claim`, { lease_seconds: 60 });
  for (const run of runs) {
    const cancelled = await client.call<Run>('POST', `/automation_runs/${run.id}/cancel`);
    assert.deepEqual([cancelled.status, cancelled.body.status], [200, 'cancelled'], cancelled.text);
    assert.deepEqual((await client.journalPage(run.id)).data, []);
  }
  assert.equal((await client.call('POST', `/automations/${id}/claim`, { lease_seconds: 60 })).status, 204);
  const late = await client.call('POST', `/automation_runs/${runs[0]?.id}/status`, { status: 'completed' });
  assert.equal(late.status, 409);
});

test('an automation whose identity is deleted is paused with the reason, and runs as no other identity', async () => {
  type Automation = { id: string; status: string; paused_reason?: string; run_as_user?: string; next_run_at?: string };
  const make = async (identity: Record<string, unknown>, more: Record<string, unknown> = {}) =>
    (await client.createAutomation({ workflow: graph, ...identity, ...more })).id;
  const person = async (email: string) =>
    (await client.call<{ id: string }>('POST', '/users', { email, name: 'P' })).body.id;
  const user = await person('gone@example.test');
  const agent = (await client.call<{ id: string }>('POST', '/agents', { name: 'Gone', org: world.org.id })).body.id;
  const asUser = await make({ run_as_user: user });
  const asAgent = await make({ run_as_agent: agent }, { type: 'scheduled', schedule: '0 3 * * *' });
  const owned = await make({ user });
  assert.equal((await client.call('DELETE', `/users/${user}`)).status, 204);
  assert.equal((await client.call('DELETE', `/agents/${agent}`)).status, 204);
  assert.equal((await client.call('GET', `/automations/${owned}`)).status, 404);
  for (const [id, who] of [
    [asUser, 'user'],
    [asAgent, 'agent'],
  ] as const) {
    const { body } = await client.call<Automation>('GET', `/automations/${id}`);
    assert.equal(body.status, 'paused');
    assert.equal(
      body.paused_reason,
      `The ${who} that it ran as was deleted. Set run_as_user or run_as_agent, or null.`,
    );
    assert.equal(body.next_run_at, undefined);
    const refused = await client.call<ErrorBody>('POST', `/automations/${id}/activate`);
    assert.equal(refused.status, 422);
    assert.equal(refused.body.error.fields[0]?.field, `run_as_${who}`);
  }
  const invoked = await client.call<ErrorBody>('POST', `/automations/${asUser}/invoke`, {});
  assert.equal(invoked.status, 422);
  assert.match(invoked.body.error.message, /paused.*user that it ran as was deleted/);
  await client.call('PATCH', `/automations/${asUser}`, { name: 'renamed' });
  assert.equal((await client.call('POST', `/automations/${asUser}/activate`)).status, 422);

  const other = await person('there@example.test');
  const changed = await client.call<Automation>('PATCH', `/automations/${asUser}`, { run_as_user: other });
  assert.deepEqual([changed.body.run_as_user, changed.body.paused_reason], [other, undefined]);
  assert.equal((await client.call('POST', `/automations/${asUser}/activate`)).status, 200);
  await client.call('PATCH', `/automations/${asAgent}`, { run_as_agent: null });
  assert.equal((await client.call('POST', `/automations/${asAgent}/activate`)).status, 200);
});

async function waitUntil(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 300_000;
  while (Date.now() < deadline) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  assert.fail('It did not come to hold.');
}
