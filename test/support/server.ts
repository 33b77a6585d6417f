import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type QuarryServer } from '../../src/boot/server.ts';
import { createServices, type Services } from '../../src/boot/services.ts';
import { readConfig } from '../../src/config/config.ts';
import type { Resolver } from '../../src/content/fetch/resolver.ts';
import type { ParserPool } from '../../src/content/parse/pool/pool.ts';
import type { DatabaseTarget } from '../../src/db/address.ts';
import type { Database } from '../../src/db/database.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { createLogger, type LogLevel } from '../../src/lib/log.ts';
import { traceIds } from '../../src/tracing/trace.ts';
import { createTestDatabase } from './database.ts';
import { findParsers } from './parsers.ts';
import { behindPooler } from './pooler.ts';
import { Provisioner } from './provisioner.ts';
import { type ApiOptions, type ApiResponse, sendRequest } from './request.ts';

export { type ApiOptions, type ApiResponse, type ErrorBody, sendExactPath, sendRequest } from './request.ts';

export type TestServerOptions = {
  /** Settings in addition to those of all tests, as environment variables. */
  env?: Record<string, string>;
  clock?: Clock;
  /** Resolves host names for the guarded fetch. */
  resolve?: Resolver;
  /** The lowest log level written to standard error. Default `error`. */
  logLevel?: LogLevel;
  /** The folder of a built documentation site. Without it, the server has none, even if this clone has built it. */
  site?: string;
  /** Running parsers, which the caller closes. By default, servers with the same settings share them. */
  parser?: ParserPool;
  /** A running server. The new one acts as a second process of the same installation, with its database and secret. */
  beside?: TestServer;
  /** An existing installation: its database, data directory and root secret, which the caller removes. */
  installed?: { target: DatabaseTarget; db: Database; dataDir: string; secret: string };
};

export type TestServer = {
  baseUrl: string;
  services: Services;
  server: QuarryServer;
  db: Database;
  dataDir: string;
  /** Sends one request. The type parameter is the type of the response body: `api<{ id: string }>('GET', …)`. */
  api<T = Record<string, unknown>>(method: string, path: string, options?: ApiOptions): Promise<ApiResponse<T>>;
  /** Creates apps, orgs, users and their credentials by SQL, independent of the routes. */
  provision: Provisioner;
  close(): Promise<void>;
};

/**
 * Starts the whole server in this process, on a free port, with a new copy of the migrated template database and an
 * empty data directory. Close it in `after`, which removes both.
 */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const { beside } = options;
  const installed = beside
    ? {
        target: beside.services.directTarget,
        db: beside.db,
        dataDir: beside.dataDir,
        secret: beside.services.config.secret,
      }
    : options.installed;
  const database = installed ? { ...installed, drop: async () => {} } : await createTestDatabase();
  // Processes on one database share one blob store.
  const dataDir = installed?.dataDir ?? mkdtempSync(join(tmpdir(), 'quarry-server-test-'));
  const removeAll = async () => {
    if (installed) return;
    await database.drop();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  };
  const pooled = behindPooler(database.target);
  let services: Services | undefined;
  try {
    const config = readConfig({
      PORT: '0',
      QUARRY_DATA_DIR: dataDir,
      QUARRY_SECRET: installed?.secret ?? randomBytes(32).toString('hex'),
      QUARRY_PARSE_WORKERS: '1',
      // Tests also run where the system isolates no process.
      QUARRY_PARSE_NETWORK: 'shared',
      QUARRY_DB_POOL: '6',
      ...(pooled === undefined ? {} : { QUARRY_PREPARE: 'off' }),
      ...options.env,
    });
    const log = createLogger(options.logLevel ?? 'error', config.otlpEndpoint === undefined ? undefined : traceIds);
    services = await createServices(config, log, {
      database: pooled ?? database.target,
      directDatabase: database.target,
      parser: options.parser ?? (options.logLevel === undefined ? findParsers(config) : undefined),
      ...(options.clock === undefined ? {} : { clock: options.clock }),
      resolve: options.resolve,
    });
    const server = await createServer(services, { site: options.site });
    const baseUrl = await server.listen();
    await services.startWorkers(server.work);
    services.setReady();
    const opened = services;
    return {
      baseUrl,
      services,
      server,
      db: database.db,
      dataDir,
      api: (method, path, apiOptions) => sendRequest(baseUrl, method, path, apiOptions),
      provision: new Provisioner(database.db, services.secrets, services.clock),
      async close() {
        await server.close();
        await opened.close();
        await removeAll();
      },
    };
  } catch (error) {
    await services?.close();
    await removeAll();
    throw error;
  }
}
