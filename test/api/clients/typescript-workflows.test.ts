import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Quarry } from '../../../clients/typescript/src/index.ts';
import {
  type Run,
  StepError,
  type WorkerOptions,
  type Workflow,
  worker,
  workflow,
} from '../../../clients/typescript/src/workflows.ts';
import { programOf } from '../../support/programs.ts';
import { startTestServer } from '../../support/server.ts';
import { speedTest, startWatch } from '../../support/speed.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer();
const app = await server.provision.app();
const quarry = new Quarry({ baseUrl: server.baseUrl, key: app.secretKey });
const workers: { stop(): Promise<void> }[] = [];
after(async () => {
  await Promise.all(workers.map((one) => one.stop()));
  await server.close();
});

let names = 0;

/** Creates the automation of a workflow. */
async function deploy(body: (run: Run, input: never) => Promise<unknown>): Promise<Workflow> {
  const name = `flow-${++names}`;
  const created = await quarry.automations.create({
    name,
    lookup_key: name,
    type: 'invoked',
    workflow: programOf(name),
  });
  await quarry.automations.activate(created.id);
  return workflow(name, {}, body as never);
}

function start(flows: Workflow[], options: WorkerOptions = {}) {
  const one = worker(quarry, flows, options);
  workers.push(one);
  void one.start();
  return one;
}

async function result(flow: Workflow, payload: Record<string, unknown> = {}, options: WorkerOptions = {}) {
  const one = start([flow], options);
  const run = await quarry.automations.run(flow.name, { payload });
  await one.stop();
  return run;
}

test('a workflow runs its steps once, in order, and returns', async () => {
  const calls: string[] = [];
  const flow = await deploy(async (run, input: { n: number }) => {
    const a = await run.step('double', ({ commandId, attempt }) => {
      calls.push(`${commandId.slice(0, 4)} ${attempt}`);
      return { twice: input.n * 2 };
    });
    return run.step('add', () => a.twice + 1);
  });
  const run = await result(flow, { n: 20 });
  assert.deepEqual([run.status, run.result], ['completed', 41]);
  assert.deepEqual(calls, ['cmd_ 1']);
});

test('a run that another worker continues repeats no step that has ended', async () => {
  const done: string[] = [];
  let stops = () => {};
  const stuck = new Promise<void>((resolve) => {
    stops = resolve;
  });
  const body = async (run: Run) => {
    const values = [await run.now(), await run.random(), await run.id()];
    await run.step('first', () => done.push('first'));
    await run.step('second', async ({ commandId, signal }) => {
      done.push(commandId);
      if (done.length > 2) return;
      stops();
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    });
    return values;
  };
  const flow = await deploy(body);
  const { id } = await quarry.automations.invoke(flow.name);
  const one = start([flow]);
  await stuck;
  await one.stop();
  const next = start([flow]);
  const run = await quarry.runs.waitFor(id);
  await next.stop();
  assert.equal(run.status, 'completed');
  assert.equal(done.length, 3);
  assert.equal(done[1], done[2]);
  const entries = (await quarry.runs.journal(id, { limit: 100 })).data;
  const values = entries.filter(({ type, node_id: node }) => type === 'node_completed' && node?.startsWith('$'));
  assert.deepEqual(
    values.map(({ record }) => record.payload),
    run.result,
  );
});

test('a failed step is tried again with the same command, and its last failure is thrown', async () => {
  const seen: [string, number][] = [];
  const flow = await deploy(async (run) => {
    const retry = { max_attempts: 3, initial_seconds: 0.05, factor: 1 };
    const value = await run.step('flaky', { retry }, ({ commandId, attempt }) => {
      seen.push([commandId, attempt]);
      if (attempt < 3) throw new Error('Not yet.');
      return 'ok';
    });
    try {
      await run.step('broken', { retry: 5 }, () => {
        throw Object.assign(new Error('Never.'), { code: 'bad_input', retryable: false });
      });
    } catch (error) {
      assert.ok(error instanceof StepError);
      return [value, error.code, error.step];
    }
    return undefined;
  });
  const run = await result(flow);
  assert.deepEqual(run.result, ['ok', 'bad_input', 'broken']);
  assert.deepEqual(
    seen.map(([, attempt]) => attempt),
    [1, 2, 3],
  );
  assert.equal(new Set(seen.map(([command]) => command)).size, 1);
});

test('branches run at the same time with steps of their own, and sleeps, signals and children end on the server', async () => {
  const child = await deploy(async (run, input: { n: number }) => run.step('square', () => input.n ** 2));
  const flow = await deploy(async (run) => {
    const all = await run.all({
      left: async (left) => {
        await left.sleep('nap', 0.05);
        return left.step('work', () => 'left');
      },
      right: (right) => right.step('work', () => 'right'),
      asked: (asked) => asked.signal<{ ok: boolean }>('answer'),
    });
    const squares = await run.map([2, 3], { key: (n) => `n${n}` }, (n, one) =>
      one.child<number>('square', child.name, { n }),
    );
    for (let turn = 0; turn < 2; turn++) await run.step('loop', () => turn);
    return { ...all, squares };
  });
  const one = start([flow, child]);
  const { id } = await quarry.automations.invoke(flow.name);
  await quarry.runs.signal(id, { name: 'answer', payload: { ok: true } });
  const run = await quarry.runs.waitFor(id);
  await one.stop();
  assert.deepEqual(run.result, { left: 'left', right: 'right', asked: { ok: true }, squares: [4, 9] });
  const { data } = await quarry.runs.journal(id, { limit: 100 });
  const nodes = new Set(data.map(({ node_id: node }) => node).filter((node) => node !== undefined));
  assert.deepEqual([...nodes].sort(), [
    ...['asked/answer', 'left/nap', 'left/work', 'loop', 'loop#2', 'n2/square', 'n3/square', 'right/work'],
  ]);
});

test('cancelling aborts the step in progress', async () => {
  let reason: unknown;
  let aborted = () => {};
  const told = new Promise<void>((resolve) => {
    aborted = resolve;
  });
  let begins = () => {};
  const begun = new Promise<void>((resolve) => {
    begins = resolve;
  });
  const flow = await deploy((run) =>
    run
      .step('long', async ({ signal }) => {
        begins();
        signal.addEventListener('abort', aborted);
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      })
      .catch((error) => {
        reason = error;
        throw error;
      }),
  );
  const one = start([flow]);
  const { id } = await quarry.automations.invoke(flow.name);
  await begun;
  const watch = startWatch();
  await quarry.runs.cancel(id);
  await told;
  watch.within(10_000, 'The news of the end');
  assert.equal(reason, undefined, 'the workflow itself does not go on');
  await one.stop();
  assert.equal((await quarry.runs.get(id)).status, 'cancelled');
});

test('changed code that does not fit the journal waits for code that does', async () => {
  const flow = await deploy(async (run) => {
    await run.step('one', () => 1);
    await run.signal('go');
    return run.step('two', () => 2);
  });
  const first = start([flow], { codeVersion: 'a' });
  const { id } = await quarry.automations.invoke(flow.name);
  await until(async () => (await quarry.runs.journal(id)).journal?.status === 'waiting');
  await first.stop();
  const changed = workflow(flow.name, {}, async (run) => run.sleep('one', '1d'));
  const second = start([changed], { codeVersion: 'b' });
  await quarry.runs.signal(id, { name: 'go' });
  await until(async () => (await quarry.runs.get(id)).waiting_for !== undefined);
  assert.deepEqual((await quarry.runs.get(id)).waiting_for, {
    kind: 'worker',
    workflow_changed: { expected: { step: 'one', kind: 'step' }, found: { step: 'one', kind: 'sleep' } },
  });
  const ending = workflow(flow.name, {}, async (run) => run.step('one', () => 1));
  const third = start([ending], { codeVersion: 'c' });
  await until(async () => JSON.stringify((await quarry.runs.get(id)).waiting_for ?? {}).includes('run_completed'));
  const fitting = start([flow], { codeVersion: 'd' });
  assert.equal((await quarry.runs.waitFor(id)).result, 2);
  await Promise.all([second.stop(), third.stop(), fitting.stop()]);
});

speedTest('a waiting worker begins a run without a pause', async (context) => {
  const watch = startWatch();
  const beginnings: number[] = [];
  const flow = await deploy((run) => run.step('begin', () => beginnings.push(watch.passedMs())));
  const one = start([flow]);
  const delays: number[] = [];
  for (let n = 0; n < 20; n++) {
    const before = watch.passedMs();
    const run = await quarry.automations.invoke(flow.name);
    await quarry.runs.waitFor(run.id);
    delays.push((beginnings[n] ?? Number.POSITIVE_INFINITY) - before);
  }
  await one.stop();
  delays.sort((a, b) => a - b);
  const median = delays[10] ?? Number.POSITIVE_INFINITY;
  context.diagnostic(`the first step begins ${median.toFixed(1)} ms after the invocation at p50`);
  assert.ok(median < 500, `${median} ms`);
});
