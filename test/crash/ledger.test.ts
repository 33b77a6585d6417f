import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { findCredentialsFile } from '../../src/boot/credentials-file.ts';
import { openDatabase, production } from '../../src/db/database.ts';
import { parseId } from '../../src/lib/ids.ts';
import { Secrets } from '../../src/tenancy/secrets.ts';
import { createTestDatabase } from '../support/database.ts';
import { killInWrite } from '../support/kill-in-write.ts';
import { headOf, verifyAll } from '../support/ledger.ts';
import { sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-ledger-'));
const { target, drop } = await createTestDatabase();
const proxy = await openTcpProxy(target);
after(async () => {
  await proxy.close();
  await drop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

test('a process killed while it seals leaves no partial segment, and the next process continues the ledger', async () => {
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
    // The segment is written, but its records are not updated.
    await killInWrite(db, serve, { table: 'audit_entries', column: 'segment' }, seal);
    assert.equal((await headOf(db, scope)).number, head.number);
    assert.deepEqual((await verify()).problems, []);
    const waiting = await unsealed();
    assert.ok(waiting > 0);

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
