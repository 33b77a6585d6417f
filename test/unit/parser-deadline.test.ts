import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createWorkClock,
  type ProcessorUse,
  readProcessorUse,
  startDeadline,
} from '../../src/content/parse/pool/deadline.ts';

test('time without a processor does not count towards a deadline, up to four times its length', async () => {
  const startedMs = performance.now();
  const ends: [who: string, afterMs: number][] = [];
  const passedMs = () => performance.now() - startedMs;
  /** A deadline of 100 ms of a process that runs, and waits for a processor, for these shares of the time. */
  const run = (who: string, runs: number, waits: number) =>
    new Promise<void>((resolve) => {
      const readUse = () => ({ ranMs: passedMs() * runs, waitedMs: passedMs() * waits });
      startDeadline(100, readUse, () => resolve(void ends.push([who, passedMs()])));
    });
  await Promise.all([run('starved', 0, 1), run('half', 0.5, 0.5), run('alone', 1, 0), run('asleep', 0, 0)]);
  assert.deepEqual(
    ends.map(([who]) => who),
    ['alone', 'asleep', 'half', 'starved'],
  );
  for (const [i, leastMs] of [98, 98, 130, 190].entries()) assert.ok((ends[i]?.[1] ?? 0) >= leastMs, `${ends}`);
});

test('a process whose own threads compete for a processor gets no more time than it leaves unused', async () => {
  const startedMs = performance.now();
  const passedMs = () => performance.now() - startedMs;
  const readUse = () => ({ ranMs: passedMs(), waitedMs: passedMs() * 5 });
  await new Promise<void>((resolve) => startDeadline(200, readUse, resolve));
  assert.ok(passedMs() < 790, `${passedMs()}`);
});

test('a cancelled deadline does not end anything, also after it was stretched', async () => {
  let ended = false;
  await new Promise<void>((resolve) => {
    let readings = 0;
    const readUse = (): ProcessorUse => {
      readings += 1;
      if (readings === 2) setImmediate(() => resolve(cancel()));
      return { ranMs: 0, waitedMs: readings === 1 ? 0 : 10_000 };
    };
    const cancel = startDeadline(10, readUse, () => {
      ended = true;
    });
  });
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.equal(ended, false);
});

test('the clock of work stands still while the process waits for a processor', async () => {
  let waitedMs = 0;
  const clock = createWorkClock(() => waitedMs);
  await new Promise((resolve) => setTimeout(resolve, 30));
  const worked = clock();
  assert.ok(worked >= 29, `${worked}`);
  waitedMs = 1_000_000;
  assert.equal(clock(), worked);
});

test('the use of processors is known for this process, and zero for one that does not exist', () => {
  assert.ok(process.platform !== 'linux' || readProcessorUse(process.pid).ranMs > 0);
  assert.deepEqual(readProcessorUse(2 ** 30), { ranMs: 0, waitedMs: 0 });
});
