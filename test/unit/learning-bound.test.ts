import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Database } from '../../src/db/database.ts';
import { learnSources } from '../../src/knowledge/learning/train.ts';

/** The app of each training that has begun, and what ends it. */
type Training = { app: string; end: () => void };

/** A database in which one source of the app is due. Its training begins with a claim, and ends when that is refused. */
function databaseOf(app: string, begun: Training[]): Database {
  const list = async () => [{ appId: app, sourceId: `source of ${app}` }];
  const claim = () =>
    new Promise<undefined>((resolve) => {
      begun.push({ app, end: () => resolve(undefined) });
    });
  return Object.assign(list, { begin: claim }) as never;
}

test('a process learns two sources at a time, of different apps, and the next one when a training has ended', async () => {
  const begun: Training[] = [];
  const jobs = ['a', 'a', 'b', 'c', 'd'].map((app) => {
    const deps = { db: databaseOf(app, begun), log: undefined as never, learnMemoryMb: 64 };
    return learnSources(deps, app, undefined);
  });
  let running: Training[] = [];
  for (let ended = 0; ended < jobs.length; ended++) {
    for (let turns = 0; turns < 10; turns++) await turn();
    running = begun.slice(ended);
    assert.ok(running.length <= 2, `${running.length} at a time`);
    assert.equal(new Set(running.map(({ app }) => app)).size, running.length);
    if (ended === 0) assert.equal(running.length, 2);
    running[0]?.end();
  }
  await Promise.all(jobs);
  assert.deepEqual(begun.map(({ app }) => app).toSorted(), ['a', 'a', 'b', 'c', 'd']);
});
