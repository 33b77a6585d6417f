import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OutsideWork } from '../../src/automations/engine/outside-work.ts';

function createWork(stopping = new AbortController()) {
  const held = new Set<string>();
  const claims = {
    take: async (id: string) => !held.has(id) && Boolean(held.add(id)),
    release: async (ids: string[]) => {
      for (const id of ids) held.delete(id);
    },
  };
  return { work: new OutsideWork<string>(claims, stopping.signal), held, stopping };
}

const task = (run: (signal: AbortSignal) => Promise<string>, describe = (error: unknown) => String(error)) => ({
  commandId: 'c',
  attempt: 1,
  timeoutSeconds: 60,
  run,
  describe: (error: unknown) => ({ code: 'x', message: describe(error) }),
});

test('a result, an error and a fault are distinguished, and none is lost', async () => {
  const { work } = createWork();
  const outcomes = [];
  const fails = () => Promise.reject(new Error('no'));
  const throws = () => {
    throw new Error('no database');
  };
  for (const one of [task(async () => 'a'), task(fails), task(fails, throws)]) {
    work.launch(one);
    await work.wait(undefined);
    const { next } = work;
    assert.ok(next);
    outcomes.push(next.outcome);
    work.drop(next);
  }
  const [result, error, fault] = outcomes;
  assert.deepEqual(result, { output: 'a' });
  assert.deepEqual(error, { error: { code: 'x', message: 'Error: no' } });
  assert.ok(fault && 'fault' in fault && fault.fault instanceof Error);
  assert.equal(work.isBusy, false);
});

test('work that exceeds its timeout fails', async () => {
  const { work } = createWork();
  const hangs = (signal: AbortSignal) =>
    new Promise<string>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  work.launch({ ...task(hangs), timeoutSeconds: 0.01 });
  await work.wait(undefined);
  assert.deepEqual(work.next?.outcome, {
    error: { code: 'timeout', message: 'The node took longer than 0.01 seconds.' },
  });
});

test('a timeout of 30 days does not overflow to zero', async () => {
  const { work } = createWork();
  const finish = () => new Promise<string>((resolve) => setTimeout(() => resolve('late'), 50));
  work.launch({ ...task(finish), timeoutSeconds: 30 * 24 * 3_600 });
  await work.wait(undefined);
  assert.deepEqual(work.next?.outcome, { output: 'late' });
});

test('closing aborts the work, releases every claim and leaves no timer', async () => {
  const { work, held } = createWork();
  const countTimers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const timers = countTimers();
  let aborted = false;
  assert.equal(await work.take('c'), true);
  assert.equal(await work.take('c'), false);
  work.launch(
    task(
      (signal) =>
        new Promise<string>(() => {
          signal.addEventListener('abort', () => {
            aborted = true;
          });
        }),
    ),
  );
  await work.close();
  assert.ok(aborted);
  assert.equal(held.size, 0);
  assert.equal(countTimers(), timers);
});
