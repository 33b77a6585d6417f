import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { findCluster } from '../../src/db/embedded.ts';
import { findPostmaster } from '../../src/db/postmaster.ts';
import { externalDatabase } from '../support/cells-of-process.ts';
import { runQuarry } from '../support/command.ts';
import { areaNames, openAreas } from '../support/crash-areas.ts';
import { checkLedger, createFixture, Ledger, startActors } from '../support/crash-ledger.ts';
import { childrenOf, readProcessFile, signal } from '../support/processes.ts';
import { sendRequest } from '../support/request.ts';
import { createRandom, reportProgress } from '../support/rounds.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';

/*
 * Random kills under mixed load on the embedded default: the server, PostgreSQL, one of its backends, or a parser.
 *   CRASH_KILLS=50 CRASH_SEED=1 node test/run.ts test/crash/mixed.test.ts
 * A restart stands for the operator's supervisor, because the server ends when its PostgreSQL does.
 */
const kills = Number(process.env.CRASH_KILLS ?? 2);
const seed = Number(process.env.CRASH_SEED ?? randomInt(2 ** 31));
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-mixed-'));
chmodSync(dataDir, 0o755);
after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));
const external = await externalDatabase();
const env = {
  ...{ QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'silent', QUARRY_PARSE_WORKERS: '1' },
  QUARRY_FETCH_ALLOW: '127.0.0.1',
  ...external.settings,
};
/** A short round includes one of the areas that end soon, chosen by its seed. */
const isLong = kills > 4;
/** After every so many kills, everything is checked, and not only what is new. */
const wholeCheckEvery = 20;
const shortAreas = ['uploads', 'crawls'] as const;

test('whatever is killed under mixed load, everything acknowledged is complete and every job ends', async (context) => {
  context.diagnostic(`repeat with CRASH_SEED=${seed}`);
  const random = createRandom(seed);
  let server = await startServe(env, [], { warmParser: true });
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const connection = () => ({ baseUrl: server.baseUrl, key });
  const fixture = await createFixture(connection());
  const ledger = new Ledger();
  const names = isLong ? areaNames : [shortAreas[seed % shortAreas.length] ?? 'uploads'];
  const areas = await openAreas(connection, ledger, names);
  after(areas.close);
  for (let kill = 0; kill < kills; kill++) {
    let isOver = false;
    const actors = startActors(connection, fixture, ledger, () => isOver, { more: areas.actors }).finally(() => {
      isOver = true;
    });
    const reach = (acknowledged: number) =>
      Promise.race([actors, until(() => isOver || ledger.acknowledged >= acknowledged)]);
    // Each kill follows a random number of acknowledged writes.
    const enough = ledger.acknowledged + 20 + Math.floor(random() * 60);
    await reach(enough);
    // An external PostgreSQL is the one of all tests.
    const victims = (['server', 'backend', 'postgres', 'parser'] as const).filter(
      (each) => external.target === undefined || each === 'server' || each === 'parser',
    );
    // In every four kills, each victim has its turn, starting with one that the seed chooses. The moment is random.
    const victim = victims[(seed + kill) % victims.length] ?? 'server';
    // Seals what was written so far at the moment of the kill.
    const sealing = sendRequest(server.baseUrl, 'GET', '/api/v1/ledger', { key }).catch(() => undefined);
    await killVictim(victim, server, random);
    if (victim === 'server' || victim === 'postgres') {
      await server.ended;
      server = await startServe(env, [], { warmParser: true });
    }
    await reach(enough + 10);
    isOver = true;
    await actors;
    await sealing;
    await checkLedger(connection(), fixture, ledger, kill % wholeCheckEvery === 0 ? 'all' : 'new');
    reportProgress(kill + 1, kills, `kills, ${ledger.acknowledged} acknowledged writes`);
  }
  await areas.finish();
  await checkLedger(connection(), fixture, ledger);
  context.diagnostic(
    `${kills} kills, with ${names.join(', ')}, ${ledger.acknowledged} acknowledged writes, ${ledger.retries} retries`,
  );
  for (const command of ['fsck', 'verify']) {
    const { code, stdout, stderr } = await runQuarry([command], { env });
    assert.equal(code, 0, stdout + stderr);
  }
  await server.stop();
});

async function killVictim(
  victim: 'server' | 'postgres' | 'backend' | 'parser',
  server: ServedProcess,
  random: () => number,
): Promise<void> {
  if (victim === 'server') return server.kill();
  const postmaster = findPostmaster(findCluster(realpathSync(dataDir)))?.pid ?? 0;
  if (victim === 'postgres') return void process.kill(postmaster, 'SIGKILL');
  const listCandidates = () =>
    victim === 'backend'
      ? childrenOf(postmaster).filter((pid) => commandOf(pid).includes('[local]'))
      : descendantsOf(server.pid).filter((pid) => commandOf(pid).includes('parse/pool'));
  const chance = random();
  // A parser that has ended is replaced after a while.
  for (const deadline = Date.now() + 300_000; Date.now() < deadline; ) {
    const candidates = listCandidates();
    const pid = candidates[Math.floor(chance * candidates.length)];
    if (pid !== undefined && signal(pid, 'SIGKILL')) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(`There is no ${victim} to kill.`);
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

function commandOf(pid: number): string {
  return readProcessFile(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');
}
