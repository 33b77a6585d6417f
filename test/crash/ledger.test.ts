import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { findCredentialsFile } from '../../src/credentials-file.ts';
import { openDatabase, production } from '../../src/db/database.ts';
import { parseId } from '../../src/ids.ts';
import { Secrets } from '../../src/tenancy/secrets.ts';
import { createTestDatabase } from '../support/database.ts';
import { headOf, verifyAll } from '../support/ledger.ts';
import { startServe } from '../support/serve.ts';
import { sendRequest } from '../support/server.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-ledger-'));
const { target, drop } = await createTestDatabase();
const proxy = await openTcpProxy(target);
after(async () => {
  await proxy.close();
  await drop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

test('a process killed while it seals leaves no part of a segment, and the next one continues the ledger', async () => {
  const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test' });
  const secret = randomBytes(32).toString('hex');
  const env = { QUARRY_DATA_DIR: dataDir, QUARRY_SECRET: secret, QUARRY_LOG_LEVEL: 'silent', DATABASE_URL: proxy.url };
  let serve = await startServe(env);
  try {
    const credentials = findCredentialsFile(dataDir);
    assert.ok(credentials);
    const scope = { appId: parseId('app', credentials.app) ?? '', sandboxId: production };
    const send = (method: string, path: string, body?: unknown) =>
      sendRequest(serve.baseUrl, method, `/api/v1${path}`, {
        key: credentials.secret_key,
        ...(body === undefined ? {} : { body }),
      });
    const seal = () => send('GET', '/ledger');
    const change = async () => assert.equal((await send('POST', '/orgs', { name: 'Org' })).status, 201);
    const verify = (heads = [head]) => verifyAll(db, new Secrets(secret), scope, heads);
    const unsealed = async () => (await db`select 1 from audit_entries where segment is null`).length;

    await change();
    await seal();
    const head = await headOf(db, scope);
    await change();
    // The segment is written, and its records wait for this lock.
    await db`create function wait_here() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(4711); return new; end'`;
    await db`create trigger wait_here before update of segment on audit_entries for each row execute function wait_here()`;
    const lock = await db.reserve();
    await lock`select pg_advisory_lock(4711)`;
    const lost = seal().catch(() => undefined);
    while ((await db`select 1 from pg_locks where locktype = 'advisory' and not granted`).length === 0);
    await serve.kill();
    assert.equal(await lost, undefined);
    await lock`select pg_advisory_unlock(4711)`;
    lock.release();
    // Its session ends and takes the transaction along.
    while (
      (await db`select 1 from pg_stat_activity where application_name = 'quarry' and datname = current_database()`)
        .length > 0
    );
    assert.equal((await headOf(db, scope)).number, head.number);
    assert.deepEqual((await verify()).problems, []);
    const waiting = await unsealed();
    assert.ok(waiting > 0);
    await db`drop trigger wait_here on audit_entries`;

    serve = await startServe(env);
    await change();
    await seal();
    const next = await headOf(db, scope);
    assert.ok(next.number > head.number);
    const { problems, counts } = await verify([head, next]);
    assert.deepEqual([problems, counts.unsealed], [[], 0]);
  } finally {
    await serve.stop();
    await db.end({ timeout: 5 });
  }
});
