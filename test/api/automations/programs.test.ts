import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AutomationsClient, entryTypes, graphOf } from '../../support/automations.ts';
import { codeOf, completed, ProgramWorker, programOf, started } from '../../support/programs.ts';
import { type ApiResponse, startTestServer, type TestServer } from '../../support/server.ts';
import { startWatch } from '../../support/speed.ts';

let server: TestServer;
let client: AutomationsClient;
let worker: ProgramWorker;
let offsetMs = 0;

before(async () => {
  const clock = { now: () => new Date(Date.now() + offsetMs) };
  server = await startTestServer({ clock });
  client = new AutomationsClient(server, await server.provision.app());
  worker = new ProgramWorker(client);
});
after(() => server.close());

async function program(more: Record<string, unknown> = {}): Promise<string> {
  return (await client.createAutomation({ workflow: programOf('invoice'), ...more })).id;
}

/** Moves the clock and does the server's check for due runs. */
async function pass(seconds: number): Promise<void> {
  offsetMs += seconds * 1_000;
  await server.server.work.ticker.tick();
}

test('a program is a workflow with versions, and its faults are 422', async () => {
  const id = await program();
  const { body } = await client.call<{ workflow: unknown }>('GET', `/automations/${id}`);
  assert.deepEqual(body.workflow, programOf('invoice'));
  await client.call('PATCH', `/automations/${id}`, { workflow: programOf('invoice-2') });
  const versions = await client.call<{ data: unknown[] }>('GET', `/automations/${id}/versions`);
  assert.equal(versions.body.data.length, 2);
  for (const workflow of [
    { kind: 'WorkflowProgram', version: 1 },
    { ...programOf('a'), version: 2 },
    { ...programOf('a'), nodes: [] },
    programOf(''),
  ]) {
    const refused = await client.call('POST', '/automations', { name: 'a', type: 'invoked', workflow });
    assert.equal(refused.status, 422, JSON.stringify(workflow));
    assert.match(refused.text, /workflow/);
  }
});

test('a worker executes a run step by step, and the journal shows it', async () => {
  const id = await program();
  const run = await client.invoke(id, { payload: { file: 'a' } });
  assert.equal(run.status, 'pending');
  const work = await worker.take(id);
  assert.equal(work.run, run.id);
  assert.deepEqual(
    work.claimed.journal.map(({ type, record }) => [type, record.payload]),
    [['run_started', { file: 'a' }]],
  );
  assert.equal((await client.run(run.id)).status, 'running');
  const first = await work.write([started('extract')]);
  assert.match(first.command_ids.extract ?? '', /^cmd_/);
  await work.write([completed('extract', { total: 5 }), started('book')]);
  const end = await work.write([completed('book', true), { type: 'run_completed', payload: 5 }]);
  assert.equal(end.cancel_requested, false);
  assert.equal(end.lease_until, undefined);
  const ended = await client.run(run.id);
  assert.equal(ended.status, 'completed');
  assert.equal(ended.result, 5);
  assert.deepEqual(entryTypes(await client.journal(run.id)), [
    'run_started',
    'node_started extract',
    'node_completed extract',
    'node_started book',
    'node_completed book',
    'run_completed',
  ]);
  assert.equal((await worker.claim(id)).status, 204);
});

test('the same batch again is 200 and written once; another at its place is 409', async () => {
  const id = await program();
  await client.invoke(id);
  const work = await worker.take(id);
  const once = await work.send([started('a')]);
  const again = await work.send([started('a')]);
  assert.equal(again.status, 200);
  assert.deepEqual({ ...again.body, lease_until: '' }, { ...once.body, lease_until: '' });
  const other = await work.send([started('b')]);
  assert.equal(other.status, 409);
  assert.equal(other.body.error.code, 'conflict');
  assert.deepEqual(other.body.error.details, { sequence: 2 });
  work.sequence = 2;
  const end = [completed('a', 1), { type: 'run_completed' }];
  assert.equal((await work.send(end)).status, 200);
  const repeated = await work.send(end);
  assert.equal(repeated.status, 200);
  assert.equal(repeated.body.cancel_requested, false);
  assert.equal((await client.journal(work.run)).length, 4);
});

test('a step that has ended is never started again, and one in progress has no second start', async () => {
  const id = await program();
  await client.invoke(id);
  const work = await worker.take(id);
  await work.write([started('a')]);
  for (const entries of [
    [started('a')],
    [completed('b')],
    [{ type: 'node_failed', node_id: 'b', error: { code: 'x', message: '' } }],
  ])
    assert.equal((await work.send(entries)).status, 409);
  await work.write([completed('a')]);
  for (const entries of [[started('a')], [completed('a')]]) {
    const refused = await work.send(entries);
    assert.equal(refused.status, 409);
    assert.equal(refused.body.error.code, 'conflict');
  }
  assert.equal((await client.journal(work.run)).length, 3);
});

test('bad entries are 422 and name the member', async () => {
  const id = await program();
  await client.invoke(id);
  const work = await worker.take(id);
  const cases: [Record<string, unknown>, string][] = [
    [{ type: 'timer_fired', node_id: 'a' }, 'entries.0.type'],
    [{ type: 'node_started', node_id: 'a' }, 'entries.0.kind'],
    [{ type: 'node_started', kind: 'step' }, 'entries.0.node_id'],
    [{ type: 'node_completed' }, 'entries.0.node_id'],
    [started('a', { seconds: 1 }), 'entries.0.seconds'],
    [started('a', { kind: 'sleep' }), 'entries.0.seconds'],
    [started('a', { kind: 'sleep', until: 'soon' }), 'entries.0.until'],
    [started('a', { kind: 'sleep', until: '2099-01-01T00:00:00Z' }), 'entries.0.until'],
    [started('a', { kind: 'signal' }), 'entries.0.name'],
    [started('a', { kind: 'child' }), 'entries.0.automation'],
    [started('a', { kind: 'sleep', seconds: 1, retry: { max_attempts: 2 } }), 'entries.0.retry'],
    [{ type: 'node_failed', node_id: 'a' }, 'entries.0.error'],
    [{ type: 'run_failed' }, 'entries.0.error'],
    [started('a\nb'), 'entries.0.node_id'],
  ];
  for (const [entry, field] of cases) {
    const refused = await work.send([entry]);
    assert.equal(refused.status, 422, field);
    assert.equal(refused.body.error.fields?.[0]?.field, field);
  }
  const early = await work.send([{ type: 'run_completed' }, started('a')]);
  assert.equal(early.body.error.fields?.[0]?.field, 'entries.0.type');
  const missing = await worker.claim('aut_0000000000000000000000');
  assert.equal(missing.status, 422);
  assert.match(missing.text, /automations\.0/);
});

test('a claim is a fencing token: after the lease, another worker has the run while it stays running', async () => {
  const id = await program();
  const { id: run } = await client.invoke(id);
  const lost = await worker.take(id, { lease_seconds: 10 });
  await lost.write([started('a')]);
  assert.equal((await worker.claim(id)).status, 204);
  await pass(11);
  assert.equal((await client.run(run)).status, 'running');
  const next = await worker.take(id);
  assert.equal(next.run, run);
  assert.deepEqual(entryTypes(next.claimed.journal as never), ['run_started', 'node_started a']);
  const stale = await lost.send([completed('a', 'late')]);
  assert.equal(stale.status, 409);
  assert.equal(stale.body.error.code, 'claim_lost');
  await next.write([completed('a', 'in time'), { type: 'run_completed', payload: 'in time' }]);
  assert.equal((await client.run(run)).result, 'in time');
  const guessed = await next.client.call('POST', `/automation_runs/${run}/entries`, {
    ...{ claim: 'clm_0000000000000000000000', after_sequence: 0, entries: [] },
  });
  assert.equal(guessed.status, 409);
});

test('a request renews the claim', async () => {
  const id = await program();
  await client.invoke(id);
  const work = await worker.take(id, { lease_seconds: 10 });
  for (let turn = 0; turn < 3; turn++) {
    await pass(6);
    await work.write([]);
    assert.equal((await worker.claim(id)).status, 204);
  }
});

test('a sleep ends without a process, and the run is ready then', async () => {
  const id = await program();
  const { id: run } = await client.invoke(id);
  const work = await worker.take(id);
  const month = 30 * 24 * 3_600;
  await work.write([started('nap', { kind: 'sleep', seconds: month })], { release: {} });
  assert.equal((await client.journalPage(run)).journal?.status, 'waiting');
  await pass(month - 60);
  assert.equal((await worker.claim(id)).status, 204);
  await pass(120);
  const next = await worker.take(id, { wait_seconds: 10 });
  assert.deepEqual(entryTypes(next.claimed.journal as never).slice(1), [
    'node_started nap',
    'timer_started nap',
    'timer_fired nap',
    'node_completed nap',
  ]);
  await next.write([{ type: 'run_completed' }]);
  assert.equal((await client.run(run)).status, 'completed');
});

test('a failed attempt is retried after its pause with the same command, and the last one fails the step', async () => {
  const id = await program();
  await client.invoke(id);
  const work = await worker.take(id);
  const retry = { max_attempts: 2, initial_seconds: 5 };
  const begun = await work.write([started('a', { retry })]);
  const failed = { type: 'node_failed', node_id: 'a', error: { code: 'busy', message: 'Not now.' } };
  await work.write([failed], { release: {} });
  assert.equal((await worker.claim(id)).status, 204);
  await pass(6);
  const next = await worker.take(id, { wait_seconds: 10 });
  const again = await next.write([started('a')]);
  assert.equal(again.command_ids.a, begun.command_ids.a);
  await next.write([failed]);
  const entries = await client.journal(next.run);
  assert.deepEqual(entryTypes(entries), [
    'run_started',
    'node_started a',
    'node_failed a',
    'node_retry_scheduled a',
    'timer_fired a',
    'node_started a',
    'node_failed a',
  ]);
  assert.deepEqual(
    entries.filter(({ type }) => type === 'node_started').map(({ record }) => record.metadata?.attempt),
    [1, 2],
  );
  assert.equal((await next.send([started('a')])).status, 409);
});

test('an attempt that must not be repeated is not', async () => {
  const id = await program();
  await client.invoke(id);
  const work = await worker.take(id);
  await work.write([started('a', { retry: { max_attempts: 5 } })]);
  const error = { code: 'invalid', message: '' };
  await work.write([{ type: 'node_failed', node_id: 'a', error, retryable: false }]);
  assert.equal((await client.journal(work.run)).at(-1)?.type, 'node_failed');
});

test('signals end a wait, early ones too, and a wait without one times out', async () => {
  const id = await program();
  const { id: run } = await client.invoke(id, { payload: { n: 7 } });
  const send = (name: string) => client.call('POST', `/automation_runs/${run}/signal`, { name, payload: 1 });
  await send('before');
  const work = await worker.take(id);
  assert.deepEqual(entryTypes(work.claimed.journal as never), ['signal_received', 'run_started']);
  assert.deepEqual(work.claimed.journal[1]?.record.payload, { n: 7 });
  assert.equal((await send('early')).status, 200);
  const taken = await work.write([]);
  assert.deepEqual(entryTypes(taken.entries as never), ['run_started', 'signal_received'].slice(1));
  const early = await work.write([started('first', { kind: 'signal', name: 'early' })]);
  assert.deepEqual(entryTypes(early.entries as never), ['signal_waiting first', 'node_completed first']);
  assert.equal(early.entries.at(-1)?.record.payload, 1);
  await work.write([started('second', { kind: 'signal', name: 'late' })], { release: {} });
  await client.call('POST', `/automation_runs/${run}/signal`, { name: 'other', payload: 0 });
  await client.call('POST', `/automation_runs/${run}/signal`, { name: 'late', payload: { ok: true } });
  const next = await worker.take(id);
  assert.deepEqual(next.claimed.journal.at(-1)?.record.payload, { ok: true });
  await next.write([started('third', { kind: 'signal', name: 'never', timeout_seconds: 60 })], { release: {} });
  await pass(61);
  const last = await worker.take(id, { wait_seconds: 10 });
  assert.deepEqual(entryTypes(last.claimed.journal as never).slice(-2), [
    'signal_timed_out third',
    'node_failed third',
  ]);
  await last.write([{ type: 'run_failed', error: { code: 'timeout', message: 'No answer.' } }]);
  const ended = await client.run(run);
  assert.deepEqual([ended.status, ended.error?.code], ['failed', 'timeout']);
});

test('a child run is started once, and its end makes the run ready', async () => {
  const child = await client.createAutomation({
    workflow: graphOf({ id: 'double', kind: 'transform', value: '{{$.n * 2}}' }),
  });
  const id = await program();
  const { id: run } = await client.invoke(id);
  const work = await worker.take(id);
  const entries = [started('kid', { kind: 'child', automation: child.id, payload: { n: 21 } })];
  const sequence = work.sequence;
  await work.write(entries, { release: {} });
  work.sequence = sequence;
  assert.equal((await work.send(entries, { release: {} })).status, 200);
  const next = await worker.take(id, { wait_seconds: 20 });
  assert.deepEqual(entryTypes(next.claimed.journal as never).slice(1), [
    'node_started kid',
    'child_run_started kid',
    'child_run_ended kid',
    'node_completed kid',
  ]);
  assert.equal(next.claimed.journal.at(-1)?.record.payload, 42);
  const runs = await client.call<{ data: { parent_run?: string }[] }>('GET', `/automations/${child.id}/runs`);
  assert.deepEqual(
    runs.body.data.map((one) => one.parent_run),
    [run],
  );
  const refused = await next.write([started('missing', { kind: 'child', automation: 'no-such' })]);
  assert.deepEqual(
    refused.entries.map(({ type, record }) => [type, (record.payload as { code: string }).code]),
    [['node_failed', 'not_found']],
  );
});

test('cancelling ends the run and its children, and reaches the worker while it waits', async () => {
  const child = await program();
  const id = await program();
  const { id: run } = await client.invoke(id);
  const work = await worker.take(id);
  await work.write([started('a'), started('kid', { kind: 'child', automation: child })]);
  const waiting = work.send([], { wait_seconds: 30 });
  const cancelled = await client.call('POST', `/automation_runs/${run}/cancel`);
  assert.equal(cancelled.status, 200);
  const told = await waiting;
  assert.equal(told.status, 200);
  assert.equal(told.body.cancel_requested, true);
  const late = await work.send([completed('a', 1)]);
  assert.equal(late.body.cancel_requested, true);
  assert.equal((await client.run(run)).status, 'cancelled');
  assert.equal((await client.journal(run)).at(-1)?.type, 'run_cancelled');
  const runs = await client.call<{ data: { status: string }[] }>('GET', `/automations/${child}/runs`);
  assert.deepEqual(
    runs.body.data.map(({ status }) => status),
    ['cancelled'],
  );
  assert.equal((await worker.claim(child)).status, 204);
});

test('a waiting claim gets a run as soon as it is invoked, and only one of many does', async () => {
  const id = await program();
  const claims = Array.from({ length: 4 }, () => worker.claim(id, { wait_seconds: 10 }));
  await new Promise((resolve) => setTimeout(resolve, 300));
  const watch = startWatch();
  await client.invoke(id);
  const taken = await Promise.race(
    claims.map((claim) => claim.then(({ status }) => (status === 200 ? status : new Promise(() => {})))),
  );
  assert.equal(taken, 200);
  watch.within(4_000, 'The claim');
  const statuses = (await Promise.all(claims)).map(({ status }) => status).sort();
  assert.deepEqual(statuses, [200, 204, 204, 204]);
});

test('runs that wait for an expired claim are offered to a waiting worker', async () => {
  const id = await program();
  await client.invoke(id);
  await worker.take(id, { lease_seconds: 1 });
  const next = await worker.claim(id, { wait_seconds: 30 });
  assert.equal(next.status, 200);
});

test('a run that the code does not fit waits for another version and says why', async () => {
  const id = await program();
  const { id: run } = await client.invoke(id);
  const work = await worker.take(id);
  await work.write([started('a'), completed('a', 1)]);
  await work.write([], { release: { workflow_changed: { expected: { step: 'a' }, found: { step: 'b' } } } });
  const waiting = await client.call<{ status: string; waiting_for: unknown }>('GET', `/automation_runs/${run}`);
  assert.equal(waiting.body.status, 'running');
  assert.deepEqual(waiting.body.waiting_for, {
    kind: 'worker',
    workflow_changed: { expected: { step: 'a' }, found: { step: 'b' } },
  });
  assert.equal((await worker.claim(id)).status, 204);
  const fitting = await new ProgramWorker(client, 'v2').take(id);
  assert.equal(fitting.run, run);
  assert.equal(
    (await client.call<{ waiting_for?: unknown }>('GET', `/automation_runs/${run}`)).body.waiting_for,
    undefined,
  );
  await fitting.write([{ type: 'run_completed' }]);
});

test('a secret in an output is hidden from readers of the journal and returned with a claim, even after it has changed', async () => {
  const secret = 'correct horse battery staple';
  await client.call('PUT', '/secrets/TOKEN', { value: secret });
  const id = await program();
  const { id: run } = await client.invoke(id);
  const work = await worker.take(id, { lease_seconds: 10 });
  await work.write([started('a'), completed('a', { token: secret, note: 'kept' })]);
  await client.call('PUT', '/secrets/TOKEN', { value: 'a new one entirely' });
  const journal = await client.journal(run);
  assert.deepEqual(journal.at(-1)?.record.payload, { token: '[redacted]', note: 'kept' });
  await pass(11);
  const next = await worker.take(id);
  assert.deepEqual(next.claimed.journal.at(-1)?.record.payload, { token: secret, note: 'kept' });
  const stored = await server.db`select secrets from automation_entry_fragments`;
  assert.equal(stored.length, 1);
  assert.ok(!Buffer.from(stored[0]?.secrets ?? '').includes(secret));
  const handed = await next.write([
    started('kid', { kind: 'child', automation: id, payload: { t: 'a new one entirely' } }),
  ]);
  assert.equal(codeOf(handed.entries[0]), 'secret_handed_on');
  await client.call('DELETE', '/secrets/TOKEN');
});

test('a limited automation starts no more runs than its limit, and resumes those that wait', async () => {
  const id = await program({ max_concurrent_runs: 1 });
  await client.invoke(id);
  const { id: second } = await client.invoke(id);
  const work = await worker.take(id);
  assert.equal((await worker.claim(id)).status, 204);
  await work.write([started('nap', { kind: 'sleep', seconds: 0 })], { release: {} });
  await pass(1);
  const resumed = await worker.take(id, { wait_seconds: 10 });
  assert.equal(resumed.run, work.run);
  const waiting = worker.claim(id, { wait_seconds: 20 });
  await resumed.write([{ type: 'run_completed' }]);
  assert.equal((await waiting).body.run.id, second);
});

test('a run has a time limit, and an output a size', async () => {
  const id = await program({ timeout_seconds: 60 });
  const { id: run } = await client.invoke(id);
  const work = await worker.take(id, { lease_seconds: 600 });
  await work.write([started('a')]);
  await work.write([completed('a', 'x'.repeat(300_000)), started('b')]);
  const failed = (await client.journal(run)).find(({ type }) => type === 'node_failed');
  assert.equal(codeOf(failed), 'output_too_large');
  await pass(61);
  await client.waitForEnd(run);
  assert.equal((await client.run(run)).error?.code, 'timeout');
  assert.equal((await work.send([completed('b')])).body.cancel_requested, true);
});

test('the journal has a limit of entries', async () => {
  const id = await program();
  const { id: run } = await client.invoke(id);
  const work = await worker.take(id);
  let told = false;
  for (let batch = 0; batch < 60 && !told; batch++) {
    const steps = Array.from({ length: 100 }, (_, n) => `s${batch}-${n}`);
    const answer = await work.write(steps.flatMap((step) => [started(step, { kind: 'value' }), completed(step, 0)]));
    told = answer.cancel_requested;
  }
  assert.ok(told);
  const ended = await client.run(run);
  assert.deepEqual([ended.status, ended.error?.code], ['failed', 'journal_limit']);
});

test('a long journal is read in pages with the claim', async () => {
  const id = await program();
  const { id: run } = await client.invoke(id);
  const work = await worker.take(id, { lease_seconds: 10 });
  for (let batch = 0; batch < 11; batch++) {
    const steps = Array.from({ length: 100 }, (_, n) => `s${batch}-${n}`);
    await work.write(steps.flatMap((step) => [started(step, { kind: 'value' }), completed(step, n(step))]));
  }
  await pass(11);
  const next = await worker.take(id);
  const all = [...next.claimed.journal];
  let cursor = next.claimed.after_cursor;
  assert.ok(cursor !== undefined);
  while (cursor !== undefined) {
    const path = `/automation_runs/${run}/claimed_journal`;
    const page: ApiResponse<{ journal: typeof all; after_cursor?: string }> = await client.call('POST', path, {
      ...{ claim: next.claimed.claim, after_cursor: cursor },
    });
    assert.equal(page.status, 200);
    all.push(...page.body.journal);
    cursor = page.body.after_cursor;
  }
  assert.equal(all.length, next.sequence);
  assert.deepEqual(
    all.map(({ sequence }) => sequence),
    all.map((_, index) => index + 1),
  );
  const stale = await client.call('POST', `/automation_runs/${run}/claimed_journal`, {
    ...{ claim: work.claimed.claim, after_cursor: next.claimed.after_cursor },
  });
  assert.equal(stale.status, 409);
});

const n = (step: string) => ({ step });

test('runs of a graph or without a workflow have no entries of a worker', async () => {
  const none = await client.createAutomation({});
  const { id: run } = await client.invoke(none.id);
  const refused = await client.call('POST', `/automation_runs/${run}/entries`, {
    ...{ claim: 'clm_0000000000000000000000', after_sequence: 0, entries: [] },
  });
  assert.equal(refused.status, 409);
  assert.equal((await worker.claim(none.id)).status, 204);
  const id = await program();
  assert.equal((await client.call('POST', `/automations/${id}/claim`, { lease_seconds: 5 })).status, 409);
});
