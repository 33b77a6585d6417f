import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { openDatabase } from '../../src/db/database.ts';
import { findEmbeddedPostgres } from '../../src/db/embedded.ts';
import { runQuarry } from '../support/command.ts';
import { checkLedger, createFixture, Ledger, startActors } from '../support/crash-ledger.ts';
import { keepFull, mountSmall, unmount } from '../support/full-disk.ts';
import { startServe } from '../support/serve.ts';

/*
 * The embedded default has one disk for its PostgreSQL and its files. That disk becomes full under mixed load, and so
 * does the disk of a backup.
 *   FULL_DISKS=10 node test/run.ts test/crash/full-cluster.test.ts
 */
const fullDisks = Number(process.env.FULL_DISKS ?? 0);
const root = mkdtempSync(join(tmpdir(), 'quarry-full-cluster-'));
const [dataDir, backups] = [join(root, 'data'), join(root, 'backups')];
for (const directory of [dataDir, backups]) mkdirSync(directory);
const isWanted = fullDisks > 0;
const isMounted = isWanted && mountSmall(dataDir, '400m') && mountSmall(backups, '64m');
const skip = isMounted ? false : isWanted ? 'it mounts file systems, which needs root' : 'npm run prove runs it';
chmodSync(root, 0o755);
after(() => {
  for (const directory of [dataDir, backups]) if (isMounted) unmount(directory);
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
});
const env = { QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'silent', QUARRY_PARSE_WORKERS: '1' };

test('when the disk of the embedded PostgreSQL and the files is full, nothing acknowledged is lost, and free space is enough to recover', {
  skip,
}, async (context) => {
  let server = await startServe(env);
  let restarts = 0;
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const connection = () => ({ baseUrl: server.baseUrl, key });
  const fixture = await createFixture(connection());
  const ledger = new Ledger();
  for (let round = 0; round < fullDisks; round++) {
    let isOver = false;
    let hasEnded = false;
    void server.ended.then(() => {
      hasEnded = true;
    });
    const actors = startActors(connection, fixture, ledger, () => isOver).finally(() => {
      isOver = true;
    });
    const reach = (isReached: () => boolean) => Promise.race([actors, until(() => isOver || isReached())]);
    const begun = ledger.acknowledged;
    await reach(() => ledger.acknowledged >= begun + 20);
    const retries = ledger.retries;
    const free = await keepFull(dataDir);
    try {
      await reach(() => hasEnded || ledger.retries >= retries + 12);
      // Every other time, PostgreSQL also has no room for its log.
      if (round % 2 === 1) await exhaustLog();
    } finally {
      await free();
    }
    const healed = ledger.acknowledged;
    const hasRecovered = () => ledger.acknowledged >= healed + 10;
    await reach(() => hasEnded || hasRecovered());
    if (hasEnded) {
      // The server ends with its PostgreSQL. This restart stands for the operator's supervisor.
      server = await startServe(env);
      restarts += 1;
      await reach(hasRecovered);
    }
    isOver = true;
    await actors;
    await checkLedger(connection(), fixture, ledger);
  }
  context.diagnostic(`${ledger.acknowledged} acknowledged writes, ${ledger.retries} retries, ${restarts} restarts`);

  const target = join(backups, 'a');
  const free = await keepFull(backups);
  const failed = await runQuarry(['backup', target], { env }).finally(free);
  assert.equal(failed.code, 1, failed.stdout + failed.stderr);
  assert.match(failed.stderr, /disk is full/);
  assert.ok(!existsSync(target) && !existsSync(`${target}.unfinished`));
  const taken = await runQuarry(['backup', target], { env });
  assert.equal(taken.code, 0, taken.stdout + taken.stderr);
  const verified = await runQuarry(['backup', 'verify', target], { env });
  assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  await checkLedger(connection(), fixture, ledger);
  const fsck = await runQuarry(['fsck'], { env });
  assert.equal(fsck.code, 0, fsck.stdout + fsck.stderr);
  await server.stop();
});

/** Makes PostgreSQL create new log files until it cannot create another. */
async function exhaustLog(): Promise<void> {
  const address = findEmbeddedPostgres(dataDir);
  if (address === undefined) return;
  const db = openDatabase(address, { poolSize: 1, applicationName: 'quarry-test' });
  try {
    for (let file = 0; file < logFilesMax; file++) {
      await db`select pg_logical_emit_message(false, 'test', 'fill')`;
      await db`select pg_switch_wal()`;
    }
    assert.fail(`PostgreSQL wrote ${logFilesMax} files of its log to a full disk.`);
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
  } finally {
    await db.end({ timeout: 1 }).catch(() => {});
  }
}

/** 16 MB each: more than fit. */
const logFilesMax = 60;

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await wait(2);
}
