import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { checkLedger, createFixture, Ledger, startActors } from '../support/crash-ledger.ts';
import { createTestDatabase } from '../support/database.ts';
import { type Fault, type FaultProxy, openFaultProxy } from '../support/fault-proxy.ts';
import { createRandom, reportProgress } from '../support/rounds.ts';
import { startS3Server } from '../support/s3-server.ts';
import { startTestServer } from '../support/server.ts';
import { startWatch } from '../support/speed.ts';

/*
 * PostgreSQL and the blob store fail under mixed load: connections are cut in the middle of a statement or an object,
 * refused, silent or slow, and the store returns 500. Clients get a 503 with Retry-After or lose their connection.
 * When the component is back, the server recovers by itself and nothing acknowledged is lost.
 *   FAULTS=100 FAULT_SEED=1 node test/run.ts test/crash/faults.test.ts
 */
const faultsMax = Number(process.env.FAULTS ?? 3);
const seed = Number(process.env.FAULT_SEED ?? randomInt(2 ** 31));
const faultMsMax = Number(process.env.FAULT_MS ?? 400);

const database = await createTestDatabase();
const s3 = await startS3Server();
const databaseProxy = await openFaultProxy(database.target);
const storeProxy = await openFaultProxy(new URL(s3.options.endpoint ?? ''));
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-faults-'));
const { target } = database;
const name = typeof target === 'string' ? target : `postgres://${target.username}@127.0.0.1/${target.database}`;
const throughProxy = new URL(name);
throughProxy.host = `127.0.0.1:${databaseProxy.port}`;
const server = await startTestServer({
  installed: { target: String(throughProxy), db: database.db, dataDir, secret: randomBytes(32).toString('hex') },
  logLevel: 'silent',
  env: {
    QUARRY_BLOB_STORE: 's3',
    QUARRY_S3_BUCKET: s3.options.bucket,
    QUARRY_S3_ENDPOINT: `http://127.0.0.1:${storeProxy.port}`,
    QUARRY_S3_PATH_STYLE: 'true',
    QUARRY_S3_PRESIGN: 'false',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
  },
});
after(async () => {
  for (const proxy of [databaseProxy, storeProxy]) proxy.set({ kind: 'none' });
  await server.close();
  await Promise.all([databaseProxy.close(), storeProxy.close()]);
  await s3.stop();
  await database.drop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

test('whatever the database and the blob store do under load, the server recovers and nothing is lost', async (context) => {
  context.diagnostic(`repeat with FAULT_SEED=${seed}`);
  const random = createRandom(seed);
  const app = await server.provision.app();
  const connection = () => ({ baseUrl: server.baseUrl, key: app.secretKey });
  const fixture = await createFixture(connection());
  const ledger = new Ledger();
  const counts: Record<string, number> = {};
  for (let number = 0; number < faultsMax; number++) {
    let isOver = false;
    const actors = startActors(connection, fixture, ledger, () => isOver).finally(() => {
      isOver = true;
    });
    const reach = (acknowledged: number) =>
      Promise.race([actors, until(() => isOver || ledger.acknowledged >= acknowledged)]);
    await reach(ledger.acknowledged + 5 + Math.floor(random() * 20));
    const [proxy, fault] = chooseFault(number, random);
    const what = `${proxy === databaseProxy ? 'database' : 'store'} ${fault.kind}`;
    proxy.set(fault);
    const lastsMs = 50 + random() * faultMsMax;
    for (const watch = startWatch(); !isOver && (proxy.hits === 0 || watch.passedMs() < lastsMs); ) await wait(5);
    assert.ok(proxy.hits > 0 || isOver, `${what} never hit`);
    proxy.set({ kind: 'none' });
    const healed = startWatch();
    await reach(ledger.acknowledged + 10);
    isOver = true;
    await actors;
    counts[what] = Math.max(counts[what] ?? 0, Math.round(healed.passedMs()));
    await checkLedger(connection(), fixture, ledger, 'new');
    reportProgress(number + 1, faultsMax, `faults, ${ledger.acknowledged} acknowledged writes`);
  }
  await checkLedger(connection(), fixture, ledger);
  context.diagnostic(`${faultsMax} faults, ${ledger.acknowledged} acknowledged writes, ${ledger.retries} retries`);
  context.diagnostic(`longest recovery in ms: ${JSON.stringify(counts)}`);
});

function chooseFault(number: number, random: () => number): [FaultProxy, Fault] {
  const bytes = (max: number) => 1 + Math.floor(random() * max);
  const faults: [FaultProxy, Fault][] = [
    [databaseProxy, { kind: 'cut-request', afterBytes: bytes(4_000) }],
    [storeProxy, { kind: 'status', status: 500 }],
    [databaseProxy, { kind: 'silence' }],
    [storeProxy, { kind: 'cut-request', afterBytes: bytes(800) }],
    [storeProxy, { kind: 'silence' }],
    [databaseProxy, { kind: 'cut-response', afterBytes: bytes(4_000) }],
    [databaseProxy, { kind: 'refuse' }],
    [storeProxy, { kind: 'refuse' }],
    [storeProxy, { kind: 'cut-response', afterBytes: bytes(300) }],
    [storeProxy, { kind: 'status', status: 503 }],
    [databaseProxy, { kind: 'delay', ms: 50 }],
    [storeProxy, { kind: 'delay', ms: 200 }],
  ];
  return faults[number % faults.length] as [FaultProxy, Fault];
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await wait(2);
}
