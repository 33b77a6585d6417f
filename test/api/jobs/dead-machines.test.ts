import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openDatabase } from '../../../src/db/database.ts';
import { Presence } from '../../../src/jobs/presence.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { createTestDatabase } from '../../support/database.ts';
import { openTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';

/* Sessions whose machine loses its power. test/api/db/replica.test.ts shows that the settings are in force. */

const { target, drop } = await createTestDatabase();
const proxies: TcpProxy[] = [];
after(async () => {
  for (const proxy of proxies) await proxy.close();
  await drop();
});

/** What a session sends until it has asked for a lock. */
async function openRecorder(): Promise<{ url: string; untilLock: Promise<string> }> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let sent = '';
  const proxy = await openTcpProxy(target, (bytes) => {
    sent += bytes.toString('latin1');
    if (sent.includes('advisory_')) resolve(sent);
  });
  proxies.push(proxy);
  return { url: proxy.url, untilLock: promise };
}

const settings = /tcp_keepalives_idle = 10; .*_interval = 5; .*_count = 3;.*tcp_user_timeout = 30000.*advisory_/s;

test('before a worker registers, its server is configured to notice the death of its machine', async () => {
  const { url, untilLock } = await openRecorder();
  const log = createLogger('silent');
  const presence = new Presence({ target: url, poolId: 'dead-machines', onCrash: () => {}, log });
  try {
    assert.match(await untilLock, settings);
  } finally {
    await presence.stop();
  }
});

for (const behindPooler of [false, true])
  test(`sessions of a pool ${behindPooler ? 'leave the settings of a transaction pooler alone' : 'do the same'}`, async () => {
    const { url, untilLock } = await openRecorder();
    const pool = openDatabase(url, { poolSize: 1, applicationName: 'quarry-test', behindPooler });
    try {
      const [row] = await pool`select pg_try_advisory_xact_lock(1, 2) as taken`;
      assert.equal(row?.taken, true);
      if (behindPooler) assert.doesNotMatch(await untilLock, /tcp_/);
      else assert.match(await untilLock, settings);
    } finally {
      await pool.end();
    }
  });
