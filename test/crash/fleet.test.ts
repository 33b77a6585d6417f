import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { runQuarry } from '../support/command.ts';
import { checkLedger, createFixture, Ledger, startActors } from '../support/crash-ledger.ts';
import { createTestDatabase } from '../support/database.ts';
import { createRandom } from '../support/rounds.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';
import { startWatch } from '../support/speed.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';

/*
 * A fleet on an external PostgreSQL. Any process may be killed at any time under mixed load, and starts again, as an
 * orchestrator would restart it.
 *   CRASH_SECONDS=600 CRASH_HTTP=3 CRASH_WORKERS=2 CRASH_SEED=1 node test/run.ts test/crash/fleet.test.ts
 */
const secondsMax = Number(process.env.CRASH_SECONDS ?? 1);
const httpCount = Number(process.env.CRASH_HTTP ?? 2);
const workerCount = Number(process.env.CRASH_WORKERS ?? 1);
const seed = Number(process.env.CRASH_SEED ?? randomInt(2 ** 31));
const killsMin = 2;
/** An average. A process needs a second or two to start again. */
const killEveryMs = secondsMax > 60 ? 6_000 : 1_000;

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-fleet-'));
const { target, drop } = await createTestDatabase();
const proxy = await openTcpProxy(target);
const fleet: ServedProcess[] = [];
let isOver = false;
after(async () => {
  isOver = true;
  await Promise.all(fleet.map((each) => each.kill()));
  await proxy.close();
  await drop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

const env = {
  DATABASE_URL: proxy.url,
  QUARRY_DATA_DIR: dataDir,
  QUARRY_SECRET: '0f7c1a94d7c35e28b0f4a1c96d82e735',
  QUARRY_LOG_LEVEL: 'silent',
  QUARRY_PARSE_WORKERS: '1',
  QUARRY_DB_POOL: '4',
};
const start = (role: 'http' | 'worker') =>
  // Links created by background jobs need an address, which no test requests.
  startServe(role === 'worker' ? { ...env, QUARRY_PUBLIC_URL: 'http://127.0.0.1:1' } : env, ['--only', role]);

test('whichever process of a fleet is killed, clients see only retries and nothing is lost or stuck', async (context) => {
  context.diagnostic(`repeat with CRASH_SEED=${seed}`);
  const random = createRandom(seed);
  const roles = [...Array(httpCount).fill('http'), ...Array(workerCount).fill('worker')] as ('http' | 'worker')[];
  for (const role of roles) fleet.push(await start(role));
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  let turn = 0;
  const connection = () => ({ baseUrl: fleet[turn++ % httpCount]?.baseUrl ?? '', key });
  const fixture = await createFixture(connection());
  const ledger = new Ledger();
  const actors = startActors(connection, fixture, ledger, () => isOver).finally(() => {
    isOver = true;
  });
  const watch = startWatch();
  let kills = 0;
  while (!isOver && (kills < killsMin || watch.passedMs() < secondsMax * 1_000)) {
    await Promise.race([actors, wait(random() * 2 * killEveryMs)]);
    // In short rounds, each role has its turn. Which of its processes is killed, and when, is random.
    const victim = kills < killsMin ? (kills % 2 === 0 ? httpCount : 0) : Math.floor(random() * fleet.length);
    await fleet[victim]?.kill();
    fleet[victim] = await start(roles[victim] ?? 'http');
    kills += 1;
  }
  isOver = true;
  await actors;
  await checkLedger(connection(), fixture, ledger);
  context.diagnostic(`${kills} kills, ${ledger.acknowledged} acknowledged writes, ${ledger.retries} retries`);
  assert.ok(ledger.acknowledged > 0);
  await Promise.all(fleet.map((each) => each.stop()));
  const fsck = await runQuarry(['fsck'], { env });
  assert.equal(fsck.code, 0, fsck.stdout + fsck.stderr);
});
