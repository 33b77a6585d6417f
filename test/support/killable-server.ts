import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findCredentialsFile } from '../../src/boot/credentials-file.ts';
import { openDatabase } from '../../src/db/database.ts';
import { parseId } from '../../src/lib/ids.ts';
import { createTestDatabase } from './database.ts';
import { sendRequest } from './request.ts';
import { startServe } from './serve.ts';
import { openTcpProxy } from './tcp-proxy.ts';

/**
 * Starts a server in a process of its own, for tests that kill it (`serve`) and start it again on the same database and
 * data directory. `db` is the test's own connection; requests are sent as the app of the first start.
 */
export async function startKillableServer(name: string) {
  const dataDir = mkdtempSync(join(tmpdir(), `quarry-crash-${name}-`));
  const { target, drop } = await createTestDatabase();
  const proxy = await openTcpProxy(target);
  const db = openDatabase(target, { poolSize: 3, applicationName: 'quarry-test' });
  const secret = randomBytes(32).toString('hex');
  const env = { QUARRY_DATA_DIR: dataDir, QUARRY_SECRET: secret, QUARRY_LOG_LEVEL: 'silent', DATABASE_URL: proxy.url };
  const serve = await startServe(env);
  const credentials = findCredentialsFile(dataDir);
  assert.ok(credentials);
  const server = {
    ...{ dataDir, secret, db, serve, appId: parseId('app', credentials.app) ?? '' },
    send<T = unknown>(method: string, path: string, body?: unknown) {
      const options = { key: credentials.secret_key, ...(body === undefined ? {} : { body }) };
      return sendRequest<T>(server.serve.baseUrl, method, `/api/v1${path}`, options);
    },
    async restart() {
      server.serve = await startServe(env);
    },
    async close() {
      await server.serve.stop();
      await db.end({ timeout: 5 });
      await proxy.close();
      await drop();
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  return server;
}
