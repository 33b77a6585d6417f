import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';
import { SilentProxy } from '../../support/silent-proxy.ts';
import { until } from '../../support/until.ts';

/* A PostgreSQL, or a network before it, that accepts connections and never responds. */

let database: TestDatabase;
let proxy: SilentProxy;
let server: TestServer;
let app: TestApp;
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-silent-'));

before(async () => {
  database = await createTestDatabase();
  proxy = await SilentProxy.open(database.target);
  server = await startTestServer({
    installed: { target: proxy.url, db: database.db, dataDir, secret: randomBytes(32).toString('hex') },
    env: { QUARRY_DB_TIMEOUT_SECONDS: '3', QUARRY_DB_POOL: '2' },
    logLevel: 'silent',
  });
  app = await server.provision.app();
});
after(async () => {
  proxy.speak();
  await server.close();
  await proxy.close();
  await database.drop();
  rmSync(dataDir, { recursive: true, force: true });
});

test('requests end in a 503 while PostgreSQL is silent, and succeed when it responds again', async () => {
  const user = await server.provision.user(app);
  const path = (key: string) => `/api/v1/kv/${key}?user=${user.id}`;
  const put = (key: string) =>
    server.api('PUT', `/api/v1/kv/${key}`, { key: app.secretKey, body: { value: key, user: user.id } });
  assert.equal((await put('before')).status, 200);

  const unseen = await server.provision.app();

  proxy.silence();
  const requests = [
    ...['a', 'b', 'c'].map(put),
    server.api('GET', `/.well-known/oauth-protected-resource/mcp/${unseen.publishableKey}`),
    server.api('GET', path('before'), { key: app.secretKey }),
    server.api('GET', '/readyz'),
  ];
  const responses = await Promise.all(requests);
  const health = await server.api('GET', '/healthz');
  proxy.speak();
  for (const response of responses) {
    assert.equal(response.status, 503);
    assert.ok(Number(response.headers.get('retry-after')) >= 1);
    assert.equal((response.body as ErrorBody).error.code, 'unavailable');
  }
  assert.equal(health.status, 200);
  while ((await server.api('GET', '/readyz')).status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal((await put('after')).status, 200);
  assert.equal((await server.api('GET', path('before'), { key: app.secretKey })).status, 200);
});

test('requests succeed when the network has forgotten the connections', async () => {
  proxy.forget();
  while ((await server.api('GET', '/readyz')).status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal((await server.api('GET', '/api/v1/users', { key: app.secretKey })).status, 200);
});

test('jobs run soon when the network has forgotten the connections of the queue in the middle of a statement', async () => {
  // The queue has connections again, of which one gets the next statement.
  await runJob();
  proxy.silence({ requests: false });
  const [{ now } = { now: '' }] = await database.db<{ now: string }[]>`select clock_timestamp()::text as now`;
  const asked = () => database.db`
    select 1 from pg_stat_activity where datname = current_database() and application_name = 'quarry-jobs'
      and query_start > ${now}::timestamptz and state = 'idle'`;
  await until(async () => (await asked()).length > 0);
  proxy.forget();
  proxy.speak();
  await runJob();
});

/** Adds a job and waits until it has ended. An attempt that fails on a lost connection is repeated without its pause. */
async function runJob(): Promise<void> {
  await database.db`select add_job('purge_sources', '{}'::json, key := 'asked')`;
  const left = () => database.db`select 1 from jobs where key = 'asked'`;
  while ((await left()).length > 0) {
    await database.db`
      update jobs set run_at = now()
      where key = 'asked' and locked_at is null and run_at > now()`;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
