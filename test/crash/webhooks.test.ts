import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { openDatabase } from '../../src/db/database.ts';
import { createTestDatabase } from '../support/database.ts';
import { sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const rounds = Number(process.env.CRASH_ROUNDS ?? 2);
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-webhooks-'));
chmodSync(dataDir, 0o755);
const { target, drop } = await createTestDatabase();
const proxy = await openTcpProxy(target);
const receiver = await WebhookReceiver.start();
after(async () => {
  await receiver.close();
  await proxy.close();
  await drop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

test('each change is delivered and none is invented, whenever the process is killed', async (context) => {
  const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test' });
  const env = {
    QUARRY_DATA_DIR: dataDir,
    QUARRY_SECRET: randomBytes(32).toString('hex'),
    QUARRY_LOG_LEVEL: 'silent',
    QUARRY_FETCH_ALLOW: '127.0.0.1',
    DATABASE_URL: proxy.url,
  };
  let serve = await startServe(env);
  try {
    const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
      secret_key: string;
    };
    const hook = { url: `${receiver.origin}/crash`, events: ['file.created'] };
    const made = await sendRequest(serve.baseUrl, 'POST', '/api/v1/webhooks', { key, body: hook });
    assert.equal(made.status, 201, made.text);

    let names = 0;
    for (let round = 0; round < rounds; round += 1) {
      const { baseUrl } = serve;
      let isOver = false;
      const write = async () => {
        while (!isOver) {
          const body = { filename: `${names++}.txt`, content_type: 'text/plain', data: 'VGV4dC4=' };
          await sendRequest(baseUrl, 'POST', '/api/v1/files', { key, body }).catch(() => {});
        }
      };
      const writers = Array.from({ length: 4 }, write);
      const seen = receiver.messages.length;
      // Between the delivery and its record, or anywhere between the change, its event and its delivery.
      const killed = Promise.withResolvers<void>();
      const killAt = seen + 1 + Math.floor(Math.random() * 40);
      receiver.respond = async (response) => {
        if (receiver.messages.length === killAt) {
          if (round % 2 === 1) await wait(Math.random() * 50);
          await serve.kill();
          killed.resolve();
        }
        response.end();
      };
      await killed.promise;
      isOver = true;
      await Promise.all(writers);
      receiver.respond = (response) => response.end();
      // A dead process's attempts would be repeated after 30 seconds.
      await db`update webhook_deliveries set next_attempt_at = now() where state = 'pending'`;
      serve = await startServe(env);
    }

    const countPending = async () => {
      const [row] = await db<[{ pending: number }]>`
        select (select count(*) from events where position is null)
          + (select count(*) from webhook_deliveries where state = 'pending') as pending`;
      return row.pending;
    };
    while ((await countPending()) > 0) await wait(20);

    const files = await db<{ filename: string }[]>`select filename from files`;
    const delivered = receiver.messages.map(({ event }) => String(event.data.filename));
    context.diagnostic(`${files.length} changes, ${delivered.length} requests`);
    assert.ok(files.length > 0);
    assert.deepEqual([...new Set(delivered)].sort(), files.map(({ filename }) => filename).sort());
    const sequences = new Set(receiver.messages.map(({ event }) => event.sequence));
    assert.deepEqual(
      [...sequences].sort((a, b) => a - b),
      files.map((_file, index) => index + 1),
    );
  } finally {
    await serve.stop();
    await db.end({ timeout: 5 });
  }
});
