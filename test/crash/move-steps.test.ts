import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { newUuid } from '../../src/lib/ids.ts';
import { fillEveryTable } from '../support/cells/every-table.ts';
import { createPair, rowsOfApp } from '../support/cells/moves.ts';
import { runMover } from '../support/cells/run-mover.ts';

/*
 * A move is killed at its steps.
 *   CRASH_POINTS=19 node test/run.ts test/crash/move-steps.test.ts
 */
/** Where the moving process kills itself, in the order in which a move passes them. */
const points = [
  ...['target fenced', 'copying', 'copied kv_entries', 'copied users', 'catching_up', 'round', 'freezing', 'frozen'],
  ...['jobs held', 'last round', 'jobs sent', 'compared', 'switched', 'opened', 'cleaning', 'target unfenced'],
  ...['deleted files', 'deleted users', 'done'],
];
/** The number of kills of one move. */
const pointsMax = Number(process.env.CRASH_POINTS ?? 4);

const pair = await createPair();
after(() => pair.close());
const { source, target } = pair;
const cells = [
  { name: 'one', target: source.target },
  { name: 'two', target: target.target },
];
const task = { directory: source.target, cells };

test('a move that is killed at its steps continues from there, and every row arrives', async () => {
  const { db } = source;
  const [appId, developerId] = [newUuid(), newUuid()];
  await db`insert into developers (id, name) values (${developerId}, 'Dev')`;
  await fillEveryTable(db, appId, developerId);
  const before = await rowsOfApp(db, appId);
  await pair.addMove(appId);
  const every = Math.max(1, Math.ceil(points.length / pointsMax));
  for (const point of points.filter((_, at) => at % every === 0))
    assert.equal(await runMover({ ...task, appId, killAt: point }), undefined, `killed at ${point}`);
  const [open] = await db`select 1 from cell_moves where app_id = ${appId} and ended_at is null`;
  // Nothing is left to do for a move that was killed at its end.
  if (open !== undefined) assert.equal(await runMover({ ...task, appId, killAt: undefined }), 'done');
  assert.deepEqual(await rowsOfApp(target.db, appId), before);
  const left = Object.entries(await rowsOfApp(db, appId)).filter(([, rows]) => rows.length > 0);
  assert.deepEqual(left, []);
});
