import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openDatabase } from '../../src/db/database.ts';
import { createTestDatabase } from '../support/database.ts';
import { killInWrite } from '../support/kill-in-write.ts';
import { sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-idempotency-'));
chmodSync(dataDir, 0o755);
const { target, drop } = await createTestDatabase();
const proxy = await openTcpProxy(target);
after(async () => {
  await proxy.close();
  await drop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

test('a process killed between the effect and its record leaves neither, and the retry takes effect once', async () => {
  const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test' });
  const env = {
    QUARRY_DATA_DIR: dataDir,
    QUARRY_SECRET: randomBytes(32).toString('hex'),
    QUARRY_LOG_LEVEL: 'silent',
    DATABASE_URL: proxy.url,
  };
  let serve = await startServe(env);
  try {
    const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
      secret_key: string;
    };
    const send = () =>
      sendRequest<{ id: string }>(serve.baseUrl, 'POST', '/api/v1/teams', {
        key,
        body: { name: 'Once' },
        headers: { 'idempotency-key': 'once' },
      });
    const teams = async () => (await db`select 1 from teams where name = 'Once'`).length;
    // The effect is written, the record is not. Claims can still be made and read.
    await killInWrite(db, serve, { table: 'idempotency_records', column: 'status' }, send);
    assert.equal(await teams(), 0);

    // The claim of the dead process would end after 30 s, which a slow start may take.
    const claimFor = (hours: number) =>
      db`update idempotency_records set claimed_until = now() + ${hours} * interval '1 hour' where status is null`;
    await claimFor(1);
    serve = await startServe(env);
    assert.equal((await send()).status, 409);
    await claimFor(0);
    const first = await send();
    const again = await send();
    assert.deepEqual([first.status, again.status, again.text, await teams()], [201, 201, first.text, 1]);
  } finally {
    await serve.stop();
    await db.end({ timeout: 5 });
  }
});
