import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Directory } from '../../src/cells/move/directory.ts';
import { parseId } from '../../src/lib/ids.ts';
import { runMover } from '../support/cells/run-mover.ts';
import { runQuarry } from '../support/command.ts';
import { checkLedger, createFixture, Ledger, startActors } from '../support/crash-ledger.ts';
import { createTestDatabase } from '../support/database.ts';
import { createRandom, reportProgress } from '../support/rounds.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';

/*
 * An app moves to and fro between two cells under mixed load, while the moving process and the servers are killed.
 *   CRASH_MOVES=50 CRASH_SEED=1 node test/run.ts test/crash/move.test.ts
 */
const moves = Number(process.env.CRASH_MOVES ?? 1);
const seed = Number(process.env.CRASH_SEED ?? randomInt(2 ** 31));
/** Where the moving process kills itself. A few per move, in the order in which a move passes them. */
const points = [
  ...['target fenced', 'copying', 'copied kv_entries', 'copied users', 'catching_up', 'round', 'freezing', 'frozen'],
  ...['jobs held', 'last round', 'jobs sent', 'compared', 'switched', 'opened', 'cleaning', 'target unfenced'],
  ...['deleted files', 'deleted users', 'done'],
];
const pointsPerMove = 2;

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-move-'));
const names = ['one', 'two'] as const;
type Cell = (typeof names)[number];
const databases = { one: await createTestDatabase(), two: await createTestDatabase() };
const proxies = { one: await openTcpProxy(databases.one.target), two: await openTcpProxy(databases.two.target) };
const servers = new Map<Cell, ServedProcess>();
let isOver = false;
after(async () => {
  isOver = true;
  await Promise.all([...servers.values()].map((server) => server.kill()));
  await Promise.all(names.flatMap((cell) => [proxies[cell].close(), databases[cell].drop()]));
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

const envOf = (cell: Cell) => ({
  ...{ DATABASE_URL: proxies[cell].url, QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'silent' },
  ...{ QUARRY_SECRET: '0f7c1a94d7c35e28b0f4a1c96d82e735', QUARRY_PARSE_WORKERS: '1', QUARRY_DB_POOL: '4' },
});
const cells = names.map((name) => ({ name, target: databases[name].target }));
const directory = new Directory(
  databases.one.target,
  cells.map((cell) => ({ ...cell, acceptsNewApps: true })),
);

const task = { directory: directory.target, cells };

test('an app moves between cells under load and kills, and everything acknowledged is complete', async (context) => {
  context.diagnostic(`repeat with CRASH_SEED=${seed}`);
  const random = createRandom(seed);
  servers.set('one', await startServe(envOf('one')));
  const credentials = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as Record<string, string>;
  const [key, appId] = [credentials.secret_key ?? '', parseId('app', credentials.app ?? '') ?? ''];
  assert.ok(key && appId, JSON.stringify(Object.keys(credentials)));
  servers.set('two', await startServe(envOf('two')));
  const { db } = databases.one;
  await db`insert into cells (name, database) values ('one', gen_random_uuid()), ('two', gen_random_uuid())`;
  await db`insert into cell_apps (app_id, cell, developer_id, name, created_at, updated_at)
    select id, 'one', developer_id, name, created_at, updated_at from apps where id = ${appId}`;

  // Sends each request to the cell of the app, as far as it knows.
  let cell: Cell = 'one';
  const learn = async () => {
    const [row] = await db<{ cell: Cell }[]>`select cell from cell_apps where app_id = ${appId}`;
    cell = row?.cell ?? cell;
  };
  const connection = () => {
    const chosen = cell;
    // These servers know nothing of each other. In a process of cells, the server itself asks the directory.
    const hasMoved = () => learn().then(() => cell !== chosen);
    return { baseUrl: servers.get(chosen)?.baseUrl ?? '', key, hasMoved };
  };
  const fixture = await createFixture(connection());
  const ledger = new Ledger();
  const learning = (async () => {
    for (; !isOver; await new Promise((resolve) => setTimeout(resolve, 50))) await learn();
  })();
  const actors = startActors(connection, fixture, ledger, () => isOver).finally(() => {
    isOver = true;
  });
  let kills = 0;
  for (let move = 0; move < moves && !isOver; move++) {
    const enough = ledger.acknowledged + 30;
    while (!isOver && ledger.acknowledged < enough) await new Promise((resolve) => setTimeout(resolve, 5));
    const from: Cell = move % 2 === 0 ? 'one' : 'two';
    await directory.addMove(appId, from === 'one' ? 'two' : 'one');
    const chosen = points.filter(() => random() < pointsPerMove / points.length);
    const killed = chosen.length > 0 ? chosen : [points[Math.floor(random() * points.length)] ?? 'done'];
    const server = move === 0 || random() < 0.5 ? from : undefined;
    for (const point of killed) {
      assert.notEqual(await runMover({ ...task, appId, killAt: point }), 'aborted');
      kills += 1;
      if (server === undefined || point !== killed[Math.floor(killed.length / 2)]) continue;
      await servers.get(server)?.kill();
      servers.set(server, await startServe(envOf(server)));
      kills += 1;
    }
    // Nothing is left to do if it killed itself at the very end.
    const [open] = await db`select 1 from cell_moves where app_id = ${appId} and ended_at is null`;
    if (open !== undefined) assert.equal(await runMover({ ...task, appId, killAt: undefined }), 'done');
    await learn();
    assert.equal(cell, from === 'one' ? 'two' : 'one');
    reportProgress(move + 1, moves, `moves, ${kills} kills, ${ledger.acknowledged} acknowledged writes`);
  }
  isOver = true;
  await Promise.all([actors, learning]);
  await checkLedger(connection(), fixture, ledger);
  context.diagnostic(
    `${moves} moves, ${kills} kills, ${ledger.acknowledged} acknowledged writes, ${ledger.retries} retries`,
  );
  for (const command of ['fsck', 'verify']) {
    const { code, stdout, stderr } = await runQuarry([command], { env: envOf(cell) });
    assert.equal(code, 0, stdout + stderr);
  }
  const [left] = await databases[cell === 'one' ? 'two' : 'one']
    .db`select 1 from users where app_id = ${appId} limit 1`;
  assert.equal(left, undefined, 'no copy is left behind');
});
