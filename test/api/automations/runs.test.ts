import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, entryTypes, graphOf, type Run } from '../../support/automations.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

let server: TestServer;
let world: TestTenants;
let client: AutomationsClient;

before(async () => {
  server = await startTestServer();
  world = await server.provision.world();
  client = new AutomationsClient(server, world.app);
});
after(() => server.close());

test('a run executes its nodes and keeps a journal of them', async () => {
  const workflow = graphOf(
    { id: 'start', kind: 'trigger', on_success: 'note' },
    { id: 'note', kind: 'kv_set', user: '{{$.user}}', key: 'bugs/{{$.bug}}', value: 'seen', on_success: 'done' },
    { id: 'done', kind: 'complete', result: { bug: '{{$.bug}}', key: '{{$nodes.note.key}}' } },
  );
  const { id } = await client.createAutomation({ workflow });
  const started = await client.invoke(id, { payload: { bug: 7, user: world.member.id } });
  assert.match(started.id, /^atr_/);
  assert.ok(['pending', 'running'].includes(started.status));
  const run = await client.waitForEnd(started.id);
  assert.equal(run.status, 'completed');
  assert.deepEqual(run.result, { bug: 7, key: 'bugs/7' });
  const journal = await client.journal(run.id);
  assert.deepEqual(entryTypes(journal), [
    'run_started',
    'node_started start',
    'node_completed start',
    'node_started note',
    'node_completed note',
    'node_started done',
    'node_completed done',
    'run_completed',
  ]);
  assert.deepEqual(
    journal.map((entry) => entry.sequence),
    [1, 2, 3, 4, 5, 6, 7, 8],
  );
  assert.deepEqual(journal[3]?.record.context, {
    input: { user: world.member.id, key: 'bugs/7', value: 'seen' },
  });
  assert.equal((journal[4]?.record.payload as { value: string } | undefined)?.value, 'seen');
  assert.match(journal[4]?.command_id ?? '', /^cmd_/);
  assert.equal(journal[3]?.command_id, journal[4]?.command_id);
  assert.ok(journal[4]?.record.environment?.worker);
  const entry = await server.api('GET', '/api/v1/kv/bugs%2F7', {
    key: world.app.publishableKey,
    token: world.member.token,
  });
  assert.equal(entry.body.value, 'seen');
});

test('a wait is woken at its time', async () => {
  const { id } = await client.createAutomation({
    workflow: graphOf(
      { id: 'w', kind: 'wait', seconds: 2, on_success: 'd' },
      { id: 'd', kind: 'complete', result: { ok: 1 } },
    ),
  });
  const { id: runId } = await client.invoke(id);
  const run = await client.waitForEnd(runId);
  assert.deepEqual(run.result, { ok: 1 });
  const journal = await client.journal(runId);
  assert.deepEqual(entryTypes(journal).slice(1, 5), [
    'node_started w',
    'timer_started w',
    'timer_fired w',
    'node_completed w',
  ]);
  assert.match(journal[2]?.timer_id ?? '', /^tmr_/);
  assert.equal(journal[2]?.timer_id, journal[3]?.timer_id);
});

test('many runs that are due together are all woken, each once', async () => {
  const { id } = await client.createAutomation({
    workflow: graphOf(
      { id: 'w', kind: 'wait', seconds: 3_600, on_success: 'c' },
      { id: 'c', kind: 'complete', result: '{{$nodes.w.fired_at}}' },
    ),
  });
  const runs = await Promise.all(Array.from({ length: 250 }, () => client.invoke(id)));
  for (const run of runs) assert.equal((await client.waitUntilWaiting(run.id)).status, 'running');
  await server.db`update automation_runs set wake_at = now() where waiting and automation_id = ${parseId('automation', id) ?? ''}`;
  for (const run of runs) assert.match(String((await client.waitForEnd(run.id)).result), /^\d{4}-/);
  const counted = await server.db`
    select e.type, count(*) from automation_run_entries e join automation_runs r on r.app_id = e.app_id and r.id = e.run_id
    where r.automation_id = ${parseId('automation', id) ?? ''} and e.type in ('timer_started', 'timer_fired', 'run_completed')
    group by 1 order by 1`;
  assert.deepEqual(
    counted.map((row) => [row.type, row.count]),
    [
      ['run_completed', 250],
      ['timer_fired', 250],
      ['timer_started', 250],
    ],
  );
  const journal = await client.journal(runs[0]?.id ?? '');
  const fired = journal.find((entry) => entry.type === 'timer_fired');
  const started = journal.find((entry) => entry.type === 'timer_started');
  assert.deepEqual([fired?.command_id, fired?.timer_id], [started?.command_id, started?.timer_id]);
  assert.deepEqual(fired?.record.payload, journal.find((entry) => entry.type === 'node_completed')?.record.payload);
  assert.equal(typeof fired?.record.environment?.worker, 'string');
});

test('a signal wakes its wait, and an earlier signal is kept', async () => {
  const { id } = await client.createAutomation({
    workflow: graphOf(
      { id: 'a', kind: 'wait_for_signal', name: 'first', on_success: 'b' },
      { id: 'b', kind: 'wait_for_signal', name: 'second' },
    ),
  });
  const { id: runId } = await client.invoke(id);
  const send = (name: string, payload: unknown) =>
    client.call('POST', `/automation_runs/${runId}/signal`, { name, payload });
  assert.equal((await send('second', { n: 2 })).status, 200);
  await client.waitUntilWaiting(runId);
  assert.equal((await send('first', { n: 1 })).status, 200);
  const run = await client.waitForEnd(runId);
  assert.deepEqual(run.result, { n: 2 });
  const late = await client.call<ErrorBody>('POST', `/automation_runs/${runId}/signal`, { name: 'x' });
  assert.equal(late.status, 409);
  assert.match(late.body.error.message, /completed/);
});

test('for_each, parallel, child runs and expressions work together', async () => {
  const child = await client.createAutomation({
    lookup_key: 'double',
    workflow: graphOf({ id: 'd', kind: 'complete', result: { twice: '{{$.n * 2}}' } }),
  });
  assert.ok(child.id);
  const run = await client.runGraph(
    graphOf(
      {
        id: 'each',
        kind: 'for_each',
        items: '$.numbers[$ > 1]',
        concurrency: 2,
        node: { id: 'call', kind: 'run_automation', automation: 'double', payload: { n: '{{$item}}' } },
        on_success: 'both',
      },
      {
        id: 'both',
        kind: 'parallel',
        nodes: [
          { id: 'sum', kind: 'transform', value: '{{$sum($nodes.each.twice)}}' },
          { id: 'count', kind: 'transform', value: '{{$count($nodes.each)}}' },
        ],
        on_success: 'check',
      },
      { id: 'check', kind: 'conditional', when: '$nodes.both.sum > 5', on_true: 'done', on_false: 'bad' },
      { id: 'done', kind: 'complete', result: '{{$nodes.both}}' },
      { id: 'bad', kind: 'fail', message: 'too small' },
    ),
    { numbers: [1, 2, 3, 4] },
  );
  assert.deepEqual(run.result, { sum: 18, count: 3 });
});

test('a failed node is named, with its code', async () => {
  const run = await client.runGraph(graphOf({ id: 'a', kind: 'kv_get', key: 'x' }));
  assert.equal(run.status, 'failed');
  assert.equal(run.error?.code, 'user_required');
  assert.equal(run.error?.node_id, 'a');
  const bad = await client.runGraph(graphOf({ id: 'a', kind: 'transform', value: '{{$error("no")}}' }));
  assert.equal(bad.error?.code, 'expression_failed');
});

test('a run names the user who invoked it, and nobody if a key or an event did', async () => {
  const workflow = graphOf({ id: 'start', kind: 'trigger' });
  const invoked = await client.createAutomation({ workflow, user: world.member.id });
  const byUser = await server.api<Run>('POST', `/api/v1/automations/${invoked.id}/invoke`, {
    ...{ key: world.app.publishableKey, token: world.member.token, body: {} },
  });
  assert.equal(byUser.body.invoked_by, world.member.id, byUser.text);
  assert.equal((await client.run(byUser.body.id)).invoked_by, world.member.id);
  const byKey = await client.invoke(invoked.id);
  assert.equal('invoked_by' in byKey, false);
  await client.createAutomation({ workflow, type: 'trigger', trigger: 'bell.rung' });
  await client.call('POST', '/events', { name: 'bell.rung' });
  let runs: Run[] = [];
  await until(async () => {
    const listed = await client.call<{ data: Run[] }>('GET', '/automation_runs');
    runs = listed.body.data.filter((run) => run.event_id !== undefined);
    return runs.length > 0;
  });
  assert.equal(runs[0]?.invoked_by, undefined);
});

test('a node of kind fail is in the journal as failed', async () => {
  const run = await client.runGraph(graphOf({ id: 'a', kind: 'fail', message: 'no', code: 'nope' }));
  assert.deepEqual(run.error, { code: 'nope', message: 'no', node_id: 'a' });
  const journal = await client.journal(run.id);
  assert.deepEqual(entryTypes(journal), ['run_started', 'node_started a', 'node_failed a', 'run_failed']);
  assert.deepEqual(journal[2]?.record.payload, { code: 'nope', message: 'no' });
});

test('a result that is null is null, and without a result it is an empty object', async () => {
  for (const [result, wanted] of [
    [{ result: null }, undefined],
    [{ result: '{{$.missing}}' }, undefined],
    [{}, {}],
  ]) {
    const { id } = await client.createAutomation({ workflow: graphOf({ id: 'done', kind: 'complete', ...result }) });
    const run = await client.waitForEnd((await client.invoke(id, { payload: {} })).id);
    assert.deepEqual([run.status, run.result], ['completed', wanted], JSON.stringify(result));
  }
});

test('the journal is read page by page with its own cursors', async () => {
  const run = await client.runGraph(
    graphOf({ id: 'a', kind: 'trigger', on_success: 'b' }, { id: 'b', kind: 'trigger' }),
  );
  const first = await client.journalPage(run.id, '?limit=4');
  assert.equal(first.data.length, 4);
  assert.equal(first.has_more, true);
  assert.equal(first.after_cursor, first.resume_cursor);
  assert.equal(first.journal?.status, 'completed');
  const second = await client.journalPage(run.id, `?limit=4&after_cursor=${first.after_cursor}`);
  assert.deepEqual(
    second.data.map((entry) => entry.sequence),
    [5, 6],
  );
  assert.equal(second.after_cursor, undefined);
  assert.equal(second.has_more, false);
  const end = await client.journalPage(run.id, `?after_cursor=${second.resume_cursor}`);
  assert.deepEqual(end.data, []);
  assert.equal(end.resume_cursor, second.resume_cursor);

  const other = await client.runGraph(graphOf({ id: 'a', kind: 'trigger' }));
  const cursor = first.after_cursor ?? '';
  const altered = `${cursor.startsWith('B') ? 'C' : 'B'}${cursor.slice(1)}`;
  for (const [id, bad] of [
    [other.id, cursor],
    [run.id, altered],
    [run.id, 'nonsense'],
  ]) {
    const answer = await client.call<ErrorBody>('GET', `/automation_runs/${id}/journal?after_cursor=${bad}`);
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'invalid_cursor']);
  }
  for (const [limit, status, length] of [
    ['0', 422, undefined],
    ['abc', 422, undefined],
    ['1000', 200, 6],
  ] as const) {
    const answer = await client.call<{ data?: unknown[] }>('GET', `/automation_runs/${run.id}/journal?limit=${limit}`);
    assert.deepEqual([answer.status, answer.body.data?.length], [status, length]);
  }
});

test('the developer path returns the same bytes', async () => {
  const run = await client.runGraph(graphOf({ id: 'a', kind: 'trigger' }));
  for (const rest of ['', '/journal']) {
    const plain = await client.call('GET', `/automation_runs/${run.id}${rest}`);
    const legacy = await server.api(
      'GET',
      `/protected/api/v1/developer/apps/${world.app.app.id}/automations/runs/${run.id}${rest}`,
      { token: world.app.developerToken },
    );
    assert.equal(legacy.status, 200);
    assert.equal(legacy.text, plain.text);
  }
});

test('a cancelled run ends with its children and starts no more', async () => {
  await client.createAutomation({ lookup_key: 'sleeper', workflow: graphOf({ id: 'w', kind: 'wait', seconds: 1000 }) });
  const { id } = await client.createAutomation({
    workflow: graphOf({ id: 'c', kind: 'run_automation', automation: 'sleeper', payload: {} }),
  });
  const { id: runId } = await client.invoke(id);
  await client.waitUntilWaiting(runId);
  const cancelled = await client.call('POST', `/automation_runs/${runId}/cancel`);
  assert.equal(cancelled.status, 200);
  assert.equal(cancelled.body.status, 'cancelled');
  const journal = await client.journal(runId);
  assert.deepEqual(entryTypes(journal).slice(-2), ['run_cancel_requested', 'run_cancelled']);
  const child = journal.find((entry) => entry.type === 'child_run_started')?.record.payload as
    | { id: string }
    | undefined;
  assert.ok(child);
  assert.equal((await client.run(child.id)).status, 'cancelled');
  const again = await client.call<ErrorBody>('POST', `/automation_runs/${runId}/cancel`);
  assert.equal(again.status, 409);
  assert.match(again.body.error.message, /cancelled/);
});

test('children that end at the same moment are all noticed', async () => {
  const child = await client.createAutomation({ workflow: graphOf({ id: 't', kind: 'trigger' }) });
  const { id } = await client.createAutomation({
    workflow: graphOf({
      ...{ id: 'e', kind: 'for_each', items: '[1..5]', concurrency: 5 },
      node: { id: 'sub', kind: 'run_automation', automation: child.id, payload: { n: '{{$item}}' } },
    }),
  });
  const runs = await Promise.all(Array.from({ length: 40 }, () => client.invoke(id)));
  for (const run of runs) assert.equal(((await client.waitForEnd(run.id)).result as unknown[]).length, 5);
});

test('a child run that fails is retried as a new run', async () => {
  const child = await client.createAutomation({
    workflow: graphOf({ id: 'f', kind: 'fail', message: 'no luck' }),
  });
  const run = await client.runGraph(
    graphOf({
      ...{ id: 'sub', kind: 'run_automation', automation: child.id, payload: {} },
      retry: { max_attempts: 3, initial_seconds: 0.05, factor: 1 },
    }),
  );
  assert.deepEqual([run.error?.code, run.error?.node_id], ['failed', 'sub'], JSON.stringify(run));
  const children = await client.call<{ data: Run[] }>('GET', `/automations/${child.id}/runs`);
  assert.deepEqual(
    children.body.data.map((each) => each.error?.message),
    ['no luck', 'no luck', 'no luck'],
  );
});

test('a child run does not outlive the node that waits for it', async () => {
  const child = await client.createAutomation({
    workflow: graphOf({ id: 'w', kind: 'wait_for_signal', name: 'never' }),
  });
  const sub = { id: 'sub', kind: 'run_automation', automation: child.id, payload: {} };
  const graphs = [
    graphOf({ ...sub, timeout_seconds: 0.3 }),
    graphOf({ id: 'p', kind: 'parallel', nodes: [sub, { id: 'x', kind: 'transform', value: '{{$error("x")}}' }] }),
  ];
  for (const workflow of graphs) assert.equal((await client.runGraph(workflow)).status, 'failed');
  const timed = await client.createAutomation({ workflow: graphOf(sub), timeout_seconds: 3 });
  assert.equal((await client.waitForEnd((await client.invoke(timed.id)).id)).error?.code, 'timeout');
  const children = await client.call<{ data: Run[] }>('GET', `/automations/${child.id}/runs`);
  assert.deepEqual(
    children.body.data.map((each) => each.status),
    ['cancelled', 'cancelled', 'cancelled'],
  );
});

test('a retry is a new run with the same payload', async () => {
  const { id } = await client.createAutomation({
    workflow: graphOf({ id: 'f', kind: 'fail', message: 'bug {{$.bug}}', code: 'nope' }),
  });
  const first = await client.waitForEnd((await client.invoke(id, { payload: { bug: 3 } })).id);
  assert.deepEqual(first.error, { code: 'nope', message: 'bug 3', node_id: 'f' });
  const retried = await client.call<{ id: string }>('POST', `/automation_runs/${first.id}/retry`);
  assert.equal(retried.status, 201);
  const second = await client.waitForEnd(retried.body.id);
  assert.equal(second.retried_from, first.id);
  assert.deepEqual(second.payload, { bug: 3 });
});

test('an idempotency key returns the first run again, and 409 for another payload', async () => {
  const { id } = await client.createAutomation({ workflow: graphOf({ id: 'a', kind: 'trigger' }) });
  const body = { payload: { a: 1, b: 2 }, idempotency_key: 'k1' };
  const answers = await Promise.all([1, 2, 3, 4].map(() => client.invoke(id, body)));
  assert.equal(new Set(answers.map((run) => run.id)).size, 1);
  const same = await client.invoke(id, { payload: { b: 2, a: 1 }, idempotency_key: 'k1' });
  assert.equal(same.id, answers[0]?.id);
  const other = await client.call('POST', `/automations/${id}/invoke`, { payload: { a: 2 }, idempotency_key: 'k1' });
  assert.equal(other.status, 409);
});

test('runs of an automation with a limit wait for their turn', async () => {
  const { id } = await client.createAutomation({
    max_concurrent_runs: 1,
    workflow: graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' }),
  });
  const first = await client.invoke(id);
  await client.waitUntilWaiting(first.id);
  const second = await client.invoke(id);
  const third = await client.invoke(id);
  assert.equal((await client.run(second.id)).status, 'pending');
  await client.call('POST', `/automation_runs/${first.id}/signal`, { name: 'go' });
  await client.waitForEnd(first.id);
  await client.waitUntilWaiting(second.id);
  assert.equal((await client.run(third.id)).status, 'pending');
  await client.call('POST', `/automation_runs/${second.id}/cancel`);
  await client.waitUntilWaiting(third.id);
});

test('a full backlog refuses invocations, at the same time too, and repeats of earlier ones still return their run', async () => {
  const { id } = await client.createAutomation({
    max_concurrent_runs: 1,
    max_pending_runs: 3,
    workflow: graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' }),
  });
  const active = await client.invoke(id);
  await client.waitUntilWaiting(active.id);
  const invoke = (key: number) =>
    client.call<Run & ErrorBody>('POST', `/automations/${id}/invoke`, { idempotency_key: `${key}` });
  const responses = await Promise.all(Array.from({ length: 8 }, (_, key) => invoke(key)));
  assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 200, 200, 429, 429, 429, 429, 429]);
  const refused = responses.findIndex(({ status }) => status === 429);
  assert.equal(responses[refused]?.body.error.code, 'rate_limited');
  assert.ok(responses[refused]?.headers.get('retry-after'));
  const first = responses.findIndex(({ status }) => status === 200);
  assert.equal((await invoke(first)).body.id, responses[first]?.body.id);
  await client.call('POST', `/automation_runs/${active.id}/signal`, { name: 'go' });
  await client.waitForEnd(active.id);
  await until(async () => (await invoke(refused)).status === 200);
});

test('an invocation needs no body', async () => {
  const { id } = await client.createAutomation({ workflow: graphOf({ id: 'a', kind: 'trigger' }) });
  const bare = await client.call<{ id: string; payload: unknown }>('POST', `/automations/${id}/invoke`);
  assert.deepEqual([bare.status, bare.body.payload], [200, {}], bare.text);
  const empty = await server.api<{ id: string }>('POST', `/api/v1/automations/${id}/invoke`, {
    key: world.app.secretKey,
    headers: { 'content-type': 'application/json' },
  });
  assert.equal(empty.status, 200);
});

test('a run that takes longer than its automation allows fails', async () => {
  const { id } = await client.createAutomation({
    timeout_seconds: 1,
    workflow: graphOf({ id: 'w', kind: 'wait', seconds: 100 }),
  });
  const run = await client.waitForEnd((await client.invoke(id)).id);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'timeout']);
});

test('a changed graph applies to new runs; active runs keep theirs', async () => {
  const graph = (result: string) =>
    graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go', on_success: 'd' }, { id: 'd', kind: 'complete', result });
  const { id } = await client.createAutomation({ workflow: graph('old') });
  const { id: old } = await client.invoke(id);
  await client.waitUntilWaiting(old);
  await client.call('PATCH', `/automations/${id}`, { workflow: graph('new') });
  const { id: young } = await client.invoke(id);
  for (const run of [old, young]) await client.call('POST', `/automation_runs/${run}/signal`, { name: 'go' });
  assert.deepEqual([(await client.waitForEnd(old)).result, (await client.waitForEnd(young)).result], ['old', 'new']);
});
