import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  createWorkClock,
  type ProcessorUse,
  readProcessorUse,
  startDeadline,
} from '../../src/content/parse/pool/deadline.ts';

/** A clock and timers that the test moves, by milliseconds. */
function holdTime({ mock }: TestContext) {
  let nowMs = 0;
  mock.timers.enable({ apis: ['setTimeout'] });
  mock.method(performance, 'now', () => nowMs);
  const pass = (ms: number) => {
    for (const end = nowMs + ms; nowMs < end; mock.timers.tick(1)) nowMs += 1;
  };
  return { now: () => nowMs, pass };
}

test('time without a processor does not count towards a deadline, up to ten times its length', (context) => {
  const { now, pass } = holdTime(context);
  const ends: [who: string, atMs: number][] = [];
  /** A deadline of 100 ms of a process that runs, and waits for a processor, for these shares of the time. */
  const run = (who: string, runs: number, waits: number) => {
    const readUse = () => ({ ranMs: now() * runs, waitedMs: now() * waits });
    startDeadline(100, readUse, () => ends.push([who, now()]));
  };
  run('starved', 0, 1);
  run('half', 0.5, 0.5);
  run('alone', 1, 0);
  run('asleep', 0, 0);
  pass(2_000);
  const early = 2;
  const [alone, asleep, half, starved] = ends;
  assert.deepEqual(
    [alone, asleep],
    [
      ['alone', 100],
      ['asleep', 100],
    ],
  );
  assert.deepEqual([half?.[0], starved?.[0]], ['half', 'starved']);
  assert.ok(Math.abs((half?.[1] ?? 0) - 150) <= early, `${half}`);
  assert.ok(Math.abs((starved?.[1] ?? 0) - 1_000) <= early, `${starved}`);
});

test('a process whose own threads compete for a processor gets no more time than it leaves unused', (context) => {
  const { now, pass } = holdTime(context);
  let endedMs: number | undefined;
  const readUse = () => ({ ranMs: now(), waitedMs: now() * 5 });
  startDeadline(200, readUse, () => {
    endedMs = now();
  });
  pass(1_000);
  assert.equal(endedMs, 200);
});

test('a cancelled deadline does not end anything, even after it was stretched', (context) => {
  const { pass } = holdTime(context);
  let ended = false;
  let readings = 0;
  const readUse = (): ProcessorUse => ({ ranMs: 0, waitedMs: readings++ === 0 ? 0 : 10_000 });
  const cancel = startDeadline(10, readUse, () => {
    ended = true;
  });
  pass(12);
  assert.deepEqual([readings, ended], [2, false]);
  cancel();
  pass(100);
  assert.equal(ended, false);
});

test('the clock of work stands still while the process waits for a processor', (context) => {
  const { pass } = holdTime(context);
  let waitedMs = 0;
  const clock = createWorkClock(() => waitedMs);
  pass(30);
  assert.equal(clock(), 30);
  waitedMs = 1_000_000;
  assert.equal(clock(), 30);
});

test('the use of processors is known for this process, and zero for one that does not exist', () => {
  assert.ok(process.platform !== 'linux' || readProcessorUse(process.pid).ranMs > 0);
  assert.deepEqual(readProcessorUse(2 ** 30), { ranMs: 0, waitedMs: 0 });
});
