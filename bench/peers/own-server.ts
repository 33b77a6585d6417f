import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DatabaseAddress } from '../../src/db/address.ts';
import { openDatabase } from '../../src/db/database.ts';
import { findEmbeddedPostgres } from '../../src/db/embedded.ts';
import { startServe } from '../../test/support/serve.ts';
import { postmasters } from '../processes.ts';

/** What `npm start` sets, and the default that tests replace: the server is measured as users start it. */
const asUsersStart = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/quarry', import.meta.url)),
  QUARRY_PARSE_WORKERS: String(Math.min(8, availableParallelism())),
};

export type OwnServer = Awaited<ReturnType<typeof startOwnServer>>;

/** Starts `quarry serve` with its embedded database in a separate process. Throws if commits are not durable. */
export async function startOwnServer(env: Record<string, string> = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
  chmodSync(dataDir, 0o755);
  const serve = await startServe({ ...asUsersStart, QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'error', ...env });
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const address = findEmbeddedPostgres(dataDir);
  if (!address) throw new Error('The embedded database does not run.');
  await requireDurable(address);
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  return {
    origin: serve.baseUrl,
    headers,
    address,
    pid: serve.pid,
    /** The server and its database. */
    pids: [serve.pid, ...postmasters(dataDir)],
    async post<T>(path: string, body: object = {}): Promise<T> {
      const request = { method: 'POST', headers, body: JSON.stringify(body) };
      const response = await fetch(`${serve.baseUrl}/api/v1${path}`, request);
      if (!response.ok) throw new Error(`POST ${path} returns ${response.status}: ${await response.text()}`);
      return (await response.json()) as T;
    },
    async stop(): Promise<void> {
      await serve.stop();
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function requireDurable(address: DatabaseAddress): Promise<void> {
  const db = openDatabase(address, { poolSize: 1, applicationName: 'bench' });
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const [row] = await db<{ setting: string }[]>`select current_setting(${name}) as setting`;
    if (row?.setting !== 'on') throw new Error(`The database runs with ${name} ${row?.setting}.`);
  }
  await db.end();
}
