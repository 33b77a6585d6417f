import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AutomationsClient, entryTypes, graphOf, type Run } from '../../support/automations.ts';
import { completed, ProgramWorker, programOf, started } from '../../support/programs.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const app = await server.provision.app();
const client = new AutomationsClient(server, app);

const retry = (run: string, body?: unknown) =>
  client.call<Run & Partial<ErrorBody> & { workflow_version: number }>('POST', `/automation_runs/${run}/retry`, body);

async function rewind(run: string, body: unknown): Promise<Run> {
  const started = await retry(run, body);
  assert.equal(started.status, 201, started.text);
  assert.equal(started.body.retried_from, run);
  return client.waitForEnd(started.body.id);
}

const copied = (entries: Awaited<ReturnType<AutomationsClient['journal']>>) =>
  entries.filter(({ record }) => record.metadata?.copied_from !== undefined);

/** Three steps, the last of which fails unless the payload says otherwise. */
const steps = graphOf(
  { id: 'a', kind: 'transform', value: { n: '{{$.n}}' }, on_success: 'b' },
  { id: 'b', kind: 'transform', value: '{{$nodes.a.n + 1}}', on_success: 'check' },
  { id: 'check', kind: 'conditional', when: '$nodes.b > 10', on_true: 'done', on_false: 'bad' },
  { id: 'done', kind: 'complete', result: { b: '{{$nodes.b}}' } },
  { id: 'bad', kind: 'fail', code: 'too_small', message: 'b is {{$nodes.b}}' },
);

test('a run continues before a node, with the journal of the old run before it', async () => {
  const run = await client.runGraph(steps, { n: 1 });
  assert.equal(run.error?.code, 'too_small');
  const old = await client.journal(run.id);
  const again = await rewind(run.id, { from: { node: 'check' } });
  assert.equal(again.error?.code, 'too_small');
  const journal = await client.journal(again.id);
  assert.deepEqual(entryTypes(journal), entryTypes(old));
  const kept = copied(journal);
  assert.deepEqual(entryTypes(kept), [
    'run_started',
    'node_started a',
    'node_completed a',
    'node_started b',
    'node_completed b',
  ]);
  for (const [index, entry] of kept.entries()) {
    assert.deepEqual(entry.record.metadata?.copied_from, { run: run.id, sequence: index + 1 });
    assert.notEqual(entry.id, old[index]?.id);
    assert.equal(entry.command_id, old[index]?.command_id);
  }
  const commands = new Set(old.map(({ command_id }) => command_id).filter(Boolean));
  for (const entry of journal.slice(kept.length)) assert.ok(!commands.has(entry.command_id ?? ''));
  const proof = await client.call<{ state: string }>('GET', '/ledger/verification');
  assert.equal(proof.status, 200, proof.text);
  assert.doesNotMatch(proof.text, /"(broken|altered|missing)"/);
});

test('outputs replace the recorded ones', async () => {
  const run = await client.runGraph(steps, { n: 1 });
  const again = await rewind(run.id, { from: { node: 'check' }, outputs: { b: 40 } });
  assert.deepEqual(again.result, { b: 40 });
  const journal = await client.journal(again.id);
  assert.equal(journal[4]?.record.metadata?.replaced, true);
  const names = async (outputs: unknown) => {
    const { status, body } = await retry(run.id, { from: { node: 'check' }, outputs });
    assert.equal(status, 422);
    return body.error?.fields.map(({ field }) => field);
  };
  assert.deepEqual(await names({ check: {} }), ['outputs.check']);
  assert.deepEqual(await names({ missing: 1 }), ['outputs.missing']);
  assert.deepEqual(await names({ a: 'x'.repeat(300_000) }), ['outputs.a']);
});

test('a replaced output that contains a secret is redacted, and later nodes see the value', async () => {
  await client.call('PUT', '/secrets/WORD', { value: 'open-sesame-1' });
  const run = await client.runGraph(
    graphOf(
      { id: 'a', kind: 'transform', value: 'closed', on_success: 'b' },
      { id: 'b', kind: 'complete', result: { length: '{{$length($nodes.a)}}' } },
    ),
  );
  const again = await rewind(run.id, { from: { node: 'b' }, outputs: { a: 'say open-sesame-1' } });
  assert.deepEqual(again.result, { length: 17 });
  assert.doesNotMatch(JSON.stringify(await client.journal(again.id)), /sesame/);
});

test('bad places are 422, and a run that has not ended is 409', async () => {
  const run = await client.runGraph(steps, { n: 1 });
  const fieldOf = async (body: unknown) => {
    const { status, body: error, text } = await retry(run.id, body);
    assert.equal(status, 422, text);
    return error.error?.fields[0]?.field;
  };
  assert.equal(await fieldOf({ from: { node: 'nowhere' } }), 'from.node');
  assert.equal(await fieldOf({ from: { node: 'done' } }), 'from.node');
  assert.equal(await fieldOf({ from: { node: 'b', sequence: 2 } }), 'from.sequence');
  assert.equal(await fieldOf({ from: { node: 'b' }, payload: {} }), 'payload');
  assert.equal(await fieldOf({ outputs: {} }), 'outputs');
  assert.equal(await fieldOf({ workflow_version: 1 }), 'workflow_version');
  assert.equal(await fieldOf({ from: { node: 'b' }, workflow_version: 9 }), 'workflow_version');
  const fine = await client.runGraph(steps, { n: 20 });
  assert.equal((await retry(fine.id, { from: 'failure' })).body.error?.fields[0]?.field, 'from');
  const waiting = await client.createAutomation({ workflow: graphOf({ id: 'w', kind: 'wait', seconds: 600 }) });
  const { id } = await client.invoke(waiting.id);
  await client.waitUntilWaiting(id);
  assert.equal((await retry(id, { from: { node: 'w' } })).status, 409);
});

test('a node that ran more than once needs a sequence, and 422 lists them', async () => {
  const run = await client.runGraph(
    graphOf(
      { id: 'start', kind: 'transform', value: { n: 0 }, on_success: 'step' },
      { id: 'step', kind: 'transform', value: '{{$max([$nodes.step, 0]) + 1}}', on_success: 'loop' },
      { id: 'loop', kind: 'conditional', when: '$nodes.step < 3', on_true: 'step', on_false: 'end' },
      { id: 'end', kind: 'complete', result: '{{$nodes.step}}' },
    ),
  );
  assert.equal(run.result, 3);
  const refused = await retry(run.id, { from: { node: 'step' } });
  assert.equal(refused.status, 422);
  const { starts } = (refused.body.error?.details ?? {}) as { starts: { sequence: number }[] };
  assert.equal(starts.length, 3);
  const again = await rewind(run.id, { from: { node: 'step', sequence: starts[1]?.sequence } });
  assert.equal(again.result, 3);
  const journal = await client.journal(again.id);
  assert.equal(journal.filter(({ node_id, type }) => node_id === 'step' && type === 'node_started').length, 3);
  assert.equal(copied(journal).length, (starts[1]?.sequence ?? 0) - 1);
});

test('from the failure, finished items, branches and children are kept', async () => {
  const child = await client.createAutomation({
    workflow: graphOf({ id: 'c', kind: 'complete', result: { of: '{{$.of}}' } }),
  });
  const { id: automation } = await client.createAutomation({
    workflow: graphOf(
      {
        id: 'both',
        kind: 'parallel',
        on_success: 'end',
        nodes: [
          { id: 'child', kind: 'run_automation', automation: child.id, payload: { of: 'x' } },
          {
            id: 'each',
            kind: 'for_each',
            items: '[1, 2, 3]',
            concurrency: 1,
            node: { id: 'item', kind: 'transform', value: "{{$item = 3 ? $error('no three') : $item}}" },
          },
        ],
      },
      { id: 'end', kind: 'complete', result: '{{$nodes.both}}' },
    ),
  });
  const started = await client.invoke(automation);
  const run = await client.waitForEnd(started.id);
  assert.equal(run.status, 'failed');
  const finished = (entries: Awaited<ReturnType<AutomationsClient['journal']>>) =>
    entries.filter(({ type }) => type === 'node_completed').map(({ node_id }) => node_id);
  const kept = finished(await client.journal(run.id));
  assert.deepEqual([...kept].filter((node) => node === 'item').length, 2);
  const again = await rewind(run.id, { from: 'failure' });
  assert.equal(again.status, 'failed');
  const journal = await client.journal(again.id);
  assert.deepEqual(finished(copied(journal)), kept);
  const restarted = journal.filter(({ type, record }) => type === 'node_started' && !record.metadata?.copied_from);
  assert.equal(restarted.filter(({ node_id }) => node_id === 'item').length, 1);
  assert.equal(restarted.filter(({ node_id }) => node_id === 'both' || node_id === 'each').length, 0);
  if (kept.includes('child')) assert.equal(restarted.filter(({ node_id }) => node_id === 'child').length, 0);
});

test('signals that a kept node took are kept, unread ones are not', async () => {
  const { id: automation } = await client.createAutomation({
    workflow: graphOf(
      { id: 'one', kind: 'wait_for_signal', name: 'go', on_success: 'two' },
      { id: 'two', kind: 'wait_for_signal', name: 'go', timeout_seconds: 5, on_timeout: 'late', on_success: 'end' },
      { id: 'end', kind: 'complete', result: { one: '{{$nodes.one}}', two: '{{$nodes.two}}' } },
      { id: 'late', kind: 'complete', result: { one: '{{$nodes.one}}', late: true } },
    ),
  });
  const { id } = await client.invoke(automation);
  const signal = (run: string, name: string, payload: unknown) =>
    client.call('POST', `/automation_runs/${run}/signal`, { name, payload });
  await signal(id, 'other', 0);
  await signal(id, 'go', 1);
  await signal(id, 'go', 2);
  assert.deepEqual((await client.waitForEnd(id)).result, { one: 1, two: 2 });
  const again = await rewind(id, { from: { node: 'two' } });
  assert.deepEqual(again.result, { one: 1, late: true });
  const signals = copied(await client.journal(again.id)).filter(({ type }) => type === 'signal_received');
  assert.deepEqual(
    signals.map(({ record }) => record.payload),
    [{ name: 'go', payload: 1 }],
  );
});

test('the version is the old one, or the one that is asked for; without from, the current one', async () => {
  const graph = (factor: number, more: object = {}) =>
    graphOf(
      { id: 'a', kind: 'transform', value: 2, on_success: 'b' },
      { id: 'b', kind: 'transform', value: `{{$nodes.a * ${factor}}}`, ...more },
    );
  const { id } = await client.createAutomation({ workflow: graph(10) });
  const run = await client.waitForEnd((await client.invoke(id)).id);
  assert.equal(run.result, 20);
  assert.equal((await client.call('PATCH', `/automations/${id}`, { workflow: graph(100) })).status, 200);
  assert.equal((await rewind(run.id, { from: { node: 'b' } })).result, 20);
  assert.equal((await rewind(run.id, { from: { node: 'b' }, workflow_version: 2 })).result, 200);
  assert.equal((await client.waitForEnd((await retry(run.id)).body.id)).result, 200);
  const other = graphOf({ id: 'b', kind: 'transform', value: 1 });
  await client.call('PATCH', `/automations/${id}`, { workflow: other });
  const refused = await retry(run.id, { from: { node: 'b' }, workflow_version: 3 });
  assert.equal(refused.status, 422);
  assert.equal(refused.body.error?.fields[0]?.field, 'workflow_version');
});

test('a plain retry takes another payload, which must match the schema', async () => {
  const { id } = await client.createAutomation({
    workflow: steps,
    input_schema: { type: 'object', required: ['n'], properties: { n: { type: 'number' } } },
  });
  const run = await client.waitForEnd((await client.invoke(id, { payload: { n: 1 } })).id);
  const again = await client.waitForEnd((await retry(run.id, { payload: { n: 50 } })).body.id);
  assert.deepEqual(again.result, { b: 51 });
  assert.deepEqual(again.payload, { n: 50 });
  assert.equal((await retry(run.id, { payload: { n: 'x' } })).status, 422);
});

test('a rewound run of an automation with a limit waits for its turn', async () => {
  const { id } = await client.createAutomation({
    max_concurrent_runs: 1,
    workflow: graphOf(
      { id: 'a', kind: 'transform', value: 1, on_success: 'b' },
      { id: 'b', kind: 'wait_for_signal', name: 'go' },
    ),
  });
  const first = await client.invoke(id);
  await client.waitUntilWaiting(first.id);
  await client.call('POST', `/automation_runs/${first.id}/cancel`);
  const second = await client.invoke(id);
  await client.waitUntilWaiting(second.id);
  const third = (await retry(first.id, { from: 'failure' })).body;
  assert.equal((await client.run(third.id)).status, 'pending');
  assert.deepEqual(entryTypes(copied(await client.journal(third.id))), [
    'run_started',
    'node_started a',
    'node_completed a',
  ]);
  await client.call('POST', `/automation_runs/${second.id}/signal`, { name: 'go' });
  await client.waitForEnd(second.id);
  await client.waitUntilWaiting(third.id);
  await client.call('POST', `/automation_runs/${third.id}/signal`, { name: 'go', payload: 'late' });
  assert.equal((await client.waitForEnd(third.id)).result, 'late');
});

test('the time limit of a run counts from its rewind', async () => {
  const { id } = await client.createAutomation({
    timeout_seconds: 6,
    workflow: graphOf(
      { id: 'a', kind: 'transform', value: 1, on_success: 'b' },
      { id: 'b', kind: 'wait', seconds: 1, on_success: 'c' },
      { id: 'c', kind: 'wait_for_signal', name: 'go' },
    ),
  });
  const run = await client.waitForEnd((await client.invoke(id)).id);
  assert.equal(run.error?.code, 'timeout');
  const again = (await retry(run.id, { from: 'failure' })).body;
  await client.waitUntilWaiting(again.id);
  const types = entryTypes(copied(await client.journal(again.id)));
  assert.ok(types.includes('timer_fired b'));
  await client.call('POST', `/automation_runs/${again.id}/signal`, { name: 'go' });
  assert.equal((await client.waitForEnd(again.id)).status, 'completed');
});

/** A claimed run of a program, which the steps up to `b` have written. */
async function startProgram(options: { payload?: unknown } = {}) {
  const { id } = await client.createAutomation({ workflow: programOf('x') });
  await client.invoke(id, { payload: { n: 1 } });
  const work = await worker.take(id, { wait_seconds: 30 });
  await work.write([
    ...[started('a', { retry: { max_attempts: 3, initial_seconds: 0 } }), completed('a', options.payload ?? 1)],
    ...[started('go', { kind: 'signal', name: 'go' }), started('left/b'), started('right/b')],
  ]);
  await client.call('POST', `/automation_runs/${work.run}/signal`, { name: 'go', payload: 7 });
  work.sequence = (await work.write([])).sequence;
  await work.write([completed('right/b', 'right')]);
  return { id, work };
}
const worker = new ProgramWorker(client);
const failed = (node_id: string) => ({ type: 'node_failed', node_id, error: { code: 'x', message: '' } });

test('a run of a program continues before a step or at its failure, and keeps what other branches had done', async () => {
  const { id, work } = await startProgram();
  await work.write([failed('left/b'), started('handled'), completed('handled'), started('c'), failed('c')]);
  assert.equal((await retry(work.run, { from: 'failure' })).status, 409, 'an active run');
  await work.write([{ type: 'run_failed', error: { code: 'x', message: 'No.' } }]);
  const cases: [unknown, string[]][] = [
    ['failure', ['a', 'go', 'left/b', 'right/b', 'handled']],
    [{ node: 'handled' }, ['a', 'go', 'left/b', 'right/b']],
    [{ node: 'left/b' }, ['a']],
  ];
  for (const [from, steps] of cases) {
    const again = await retry(work.run, { from });
    assert.equal(again.status, 201, again.text);
    assert.deepEqual([again.body.status, again.body.retried_from], ['pending', work.run]);
    const next = await worker.take(id, { wait_seconds: 30 });
    assert.equal(next.run, again.body.id);
    const entries = next.claimed.journal;
    assert.equal(entries[0]?.type, 'run_started');
    assert.equal(entries.filter(({ type }) => type === 'run_started').length, 1);
    const ended = entries.filter(({ type }) => type === 'node_completed' || type === 'node_failed');
    assert.deepEqual(new Set(entries.flatMap(({ node_id }) => node_id ?? [])), new Set(steps));
    assert.equal(ended.length, steps.length);
    assert.ok(entries.every(({ record }) => record.metadata?.copied_from !== undefined));
    assert.equal((await client.run(next.run)).status, 'running');
    await next.write([started('new'), completed('new'), { type: 'run_completed', payload: from }]);
    assert.equal((await client.run(next.run)).status, 'completed');
  }
  const proof = await client.call('GET', '/ledger/verification');
  assert.doesNotMatch(proof.text, /"(broken|altered|missing)"/);
});

test('outputs of steps are replaced, secrets reach the worker of the new run, and wrong places are 422', async () => {
  const token = 'correct horse battery staple';
  await client.call('PUT', '/secrets/TOKEN', { value: token });
  const { id, work } = await startProgram({ payload: { token } });
  await work.write([completed('left/b'), { type: 'run_completed' }]);
  const from = { node: 'right/b' };
  const outputs = { go: { by: 'hand', token } };
  const again = await retry(work.run, { from: { node: 'left/b' }, outputs: { a: { edited: token } } });
  assert.equal(again.status, 201, again.text);
  const next = await worker.take(id, { wait_seconds: 30 });
  const output = (node: string, journal = next.claimed.journal) =>
    journal.find(({ type, node_id }) => type === 'node_completed' && node_id === node)?.record.payload;
  assert.deepEqual(output('a'), { edited: token });
  assert.doesNotMatch(JSON.stringify(await client.journal(next.run)), /battery/);
  await next.write([{ type: 'run_completed' }]);
  assert.equal((await retry(work.run, { from })).status, 201);
  assert.deepEqual(output('a', (await worker.take(id, { wait_seconds: 30 })).claimed.journal), { token });
  const wrong: [object, string][] = [
    [{ from: { node: 'nowhere' } }, 'from.node'],
    [{ from: { node: 'a', sequence: 3 } }, 'from.sequence'],
    [{ from: 'failure' }, 'from'],
    [{ from, outputs }, 'outputs.go'],
    [{ from, workflow_version: 1 }, 'workflow_version'],
  ];
  for (const [body, field] of wrong) {
    const refused = await retry(work.run, body);
    assert.equal(refused.status, 422, refused.text);
    assert.equal(refused.body.error?.fields[0]?.field, field);
  }
});

test('a run that was cancelled before its first step, with a signal, starts with its payload when it continues', async () => {
  const { id } = await client.createAutomation({ workflow: programOf('x') });
  const { id: run } = await client.invoke(id, { payload: { n: 1 } });
  await client.call('POST', `/automation_runs/${run}/signal`, { name: 'go' });
  assert.equal((await client.call('POST', `/automation_runs/${run}/cancel`)).status, 200);
  assert.equal((await worker.claim(id)).status, 204);
  const again = await retry(run, { from: 'failure' });
  assert.equal(again.status, 201, again.text);
  const { claimed } = await worker.take(id);
  assert.deepEqual(
    claimed.journal.map(({ type, record }) => [type, record.payload]),
    [['run_started', { n: 1 }]],
  );
});
