import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AutomationsClient, graphOf, type Run } from '../../support/automations.ts';
import fc from '../../support/fast-check.ts';
import { modelRuns, modelTimes } from '../../support/rounds.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

/*
 *   MODEL_TIMES=8 MODEL_SEED=1 node test/run.ts test/api/automations/rewind-model.test.ts
 *
 * Random graphs with loops, branches, items, children and signals are run, and run again from random nodes and from
 * their failure, several times after each other. Each new run is compared with the journal of the one that it continues.
 */
const server = await startTestServer();
after(() => server.close());
const client = new AutomationsClient(server, await server.provision.app());
const { id: child } = await client.createAutomation({
  workflow: graphOf({ id: 'c', kind: 'complete', result: { of: '{{$.of}}' } }),
});

const step = fc.oneof(
  fc.record({ kind: fc.constant('value' as const) }),
  fc.record({ kind: fc.constant('loop' as const), times: fc.integer({ min: 1, max: 3 }) }),
  fc.record({
    kind: fc.constant('each' as const),
    items: fc.integer({ min: 1, max: 5 }),
    concurrency: fc.integer({ min: 1, max: 3 }),
    failing: fc.option(fc.integer({ min: 1, max: 3 }), { freq: 4 }),
  }),
  fc.record({ kind: fc.constant('both' as const) }),
  fc.record({ kind: fc.constant('signal' as const) }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
const rewinds = fc.array(fc.record({ at: fc.nat(1_000), failure: fc.boolean(), repair: fc.boolean() }), {
  minLength: 2,
  maxLength: 3,
});
type Rewind = typeof rewinds extends fc.Arbitrary<(infer T)[]> ? T : never;

/** The nodes of a step, the first of which it starts with. */
function nodesOf(one: Step, index: number, next: string): Record<string, unknown>[] {
  const id = `s${index}`;
  const then = { on_success: next };
  switch (one.kind) {
    case 'value':
      return [{ id, kind: 'transform', value: `{{$.n + ${index}}}`, ...then }];
    case 'loop':
      return [
        { id, kind: 'transform', value: `{{$max([$nodes.${id}, 0]) + 1}}`, on_success: `${id}_more` },
        { id: `${id}_more`, kind: 'conditional', when: `$nodes.${id} < ${one.times}`, on_true: id, on_false: next },
      ];
    case 'each': {
      const value = `{{$nodes.flag and $item = ${one.failing ?? 0} ? $error('broken') : $item * 10}}`;
      const node = { id: `${id}_item`, kind: 'transform', value };
      const items = JSON.stringify(Array.from({ length: one.items }, (_, at) => at + 1));
      return [{ id, kind: 'for_each', items, concurrency: one.concurrency, node, ...then }];
    }
    case 'both':
      return [
        {
          ...{ id, kind: 'parallel', ...then },
          nodes: [
            { id: `${id}_value`, kind: 'transform', value: index },
            { id: `${id}_child`, kind: 'run_automation', automation: child, payload: { of: index } },
          ],
        },
      ];
    case 'signal':
      return [{ id, kind: 'wait_for_signal', name: 'go', ...then }];
  }
}

/** The output of a step, as far as it does not depend on signals. */
function outputOf(one: Step, index: number, n: number): unknown {
  const id = `s${index}`;
  if (one.kind === 'value') return n + index;
  if (one.kind === 'loop') return one.times;
  if (one.kind === 'each') return Array.from({ length: one.items }, (_, at) => (at + 1) * 10);
  return one.kind === 'both' ? { [`${id}_value`]: index, [`${id}_child`]: { of: index } } : undefined;
}

type Entry = Awaited<ReturnType<AutomationsClient['journal']>>[number];
type Ended = { run: Run; journal: Entry[]; isRepaired: boolean };
const counts = { rewinds: 0, kept: 0, openItems: 0, children: 0, signals: 0, failures: 0 };

/** Sends a signal whenever the run waits for one. */
async function complete(id: string): Promise<{ run: Run; journal: Entry[] }> {
  const deadline = Date.now() + 300_000;
  for (let sent = 0; Date.now() < deadline; ) {
    const run = (await client.run(id)) as Run & { waiting_for?: { kind: string } };
    if (['completed', 'failed'].includes(run.status)) return { run, journal: await client.journal(id) };
    const { journal } = await client.journalPage(id);
    if (run.waiting_for?.kind === 'signal' && journal && journal.current_sequence > sent) {
      sent = journal.current_sequence + 1;
      await client.call('POST', `/automation_runs/${id}/signal`, { name: 'go', payload: { sent } });
    } else await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`The run did not end: ${JSON.stringify(await client.journal(id))}`);
}

function checkEnd({ run, journal, isRepaired }: Ended, steps: readonly Step[], n: number): void {
  const failing = steps.findIndex((one) => one.kind === 'each' && one.failing !== null && one.failing <= one.items);
  assert.deepEqual(
    journal.map(({ sequence }) => sequence),
    journal.map((_entry, index) => index + 1),
  );
  if (failing >= 0 && !isRepaired) {
    assert.equal(run.error?.node_id, `s${failing}`, JSON.stringify(run));
    return;
  }
  assert.equal(run.status, 'completed', JSON.stringify(run));
  const result = run.result as Record<string, unknown>;
  for (const [index, one] of steps.entries())
    if (one.kind !== 'signal') assert.deepEqual(result[`s${index}`], outputOf(one, index, n));
  for (const { type, record } of journal) {
    if (type !== 'node_completed' || record.metadata?.signal_sequence === undefined) continue;
    const taken = journal[Number(record.metadata.signal_sequence) - 1];
    assert.ok(taken?.type === 'signal_received');
    assert.deepEqual((taken.record.payload as { payload: unknown }).payload, record.payload);
  }
}

/** Compares a run with the one that it continues before the entry `cut`. */
function checkKept(old: Ended, next: Ended, cut: number): void {
  const kept = next.journal.filter(({ record }) => record.metadata?.copied_from !== undefined);
  counts.kept += kept.length;
  assert.deepEqual(kept, next.journal.slice(0, kept.length), 'Entries that are kept come first.');
  const completed = new Set<string>();
  for (const entry of kept) {
    const from = entry.record.metadata?.copied_from as { run: string; sequence: number };
    const source = old.journal[from.sequence - 1] as Entry;
    assert.equal(from.run, old.run.id);
    assert.ok(from.sequence < cut);
    assert.notEqual(entry.id, source.id);
    assert.deepEqual([entry.type, entry.node_id, entry.command_id], [source.type, source.node_id, source.command_id]);
    if (entry.record.metadata?.replaced !== true) assert.deepEqual(entry.record.payload, source.record.payload);
    if (entry.type === 'node_completed' && entry.command_id) completed.add(entry.command_id);
    if (entry.type === 'signal_received') counts.signals += 1;
  }
  for (const { type, sequence, command_id, node_id } of old.journal)
    if (type === 'node_completed' && sequence < cut)
      assert.ok(completed.has(command_id ?? ''), `${node_id} was finished and is not kept.`);
  const known = new Set(old.journal.map(({ command_id }) => command_id));
  const keptStarts = new Set(kept.filter(({ type }) => type === 'node_started').map(({ command_id }) => command_id));
  for (const { type, command_id, node_id } of next.journal.slice(kept.length)) {
    if (type === 'node_started') assert.ok(!known.has(command_id), `${node_id} runs again with an old command.`);
    if (command_id === undefined || type === 'signal_received') continue;
    assert.ok(!completed.has(command_id), `${node_id} was kept, but runs again.`);
    if (keptStarts.has(command_id) && type === 'node_completed') counts.openItems += 1;
  }
  const children = next.journal.slice(kept.length).filter(({ type }) => type === 'child_run_started');
  const ids = old.journal.filter(({ type }) => type === 'child_run_started').map(({ record }) => record.payload);
  for (const { record } of children)
    assert.ok(!ids.some((id) => JSON.stringify(id) === JSON.stringify(record.payload)));
  counts.children += kept.filter(({ type }) => type === 'child_run_started').length;
}

async function rewind(old: Ended, { at, failure, repair }: Rewind, broken: boolean): Promise<Ended> {
  const isFailure = failure && old.run.status === 'failed';
  const starts = old.journal.filter(({ type }) => type === 'node_started');
  const start = starts[at % starts.length] as Entry;
  const cut = isFailure ? old.journal.length : start.sequence;
  const flag = old.journal.find(({ type, node_id }) => type === 'node_completed' && node_id === 'flag');
  const repairs = repair && flag !== undefined && flag.sequence < cut;
  const from = isFailure ? 'failure' : { node: start.node_id, sequence: start.sequence };
  const body = { from, ...(repairs ? { outputs: { flag: false } } : {}) };
  const {
    status,
    body: made,
    text,
  } = await client.call<Run & Partial<ErrorBody>>('POST', `/automation_runs/${old.run.id}/retry`, body);
  assert.equal(status, 201, text);
  const isRepaired = !broken || repairs || (old.isRepaired && (isFailure || start.node_id !== 'flag'));
  const next = { ...(await complete(made.id)), isRepaired };
  checkKept(old, next, cut);
  counts.rewinds += 1;
  if (isFailure) counts.failures += 1;
  return next;
}

test('runs that continue others keep what was finished, once, and end as the model says', {
  timeout: 600_000 * modelTimes,
}, async (context) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 2, maxLength: 5 }),
      fc.nat(9),
      fc.boolean(),
      rewinds,
      async (steps, n, broken, tries) => {
        const workflow = graphOf(
          { id: 'flag', kind: 'transform', value: '{{$.broken}}', on_success: 's0' },
          ...steps.flatMap((one, index) => nodesOf(one, index, index + 1 < steps.length ? `s${index + 1}` : 'end')),
          { id: 'end', kind: 'complete', result: '{{$nodes}}' },
        );
        const { id } = await client.createAutomation({ workflow });
        const started = await client.invoke(id, { payload: { n, broken } });
        let last: Ended = { ...(await complete(started.id)), isRepaired: !broken };
        checkEnd(last, steps, n);
        for (const one of tries) {
          last = await rewind(last, one, broken);
          checkEnd(last, steps, n);
        }
      },
    ),
    modelRuns(16),
  );
  context.diagnostic(JSON.stringify(counts));
  assert.ok(counts.rewinds > 10 && counts.kept > counts.rewinds);
  assert.ok(counts.failures > 0 && counts.openItems > 0 && counts.children > 0 && counts.signals > 0);
  const { text } = await client.call('GET', '/ledger/verification');
  assert.doesNotMatch(text, /"(broken|altered|missing)"/);
});
