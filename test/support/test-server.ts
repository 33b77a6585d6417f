import { randomBytes } from 'node:crypto';
import type { QuarryServer } from '../../src/boot/server.ts';
import type { Services } from '../../src/boot/services.ts';
import { readConfig } from '../../src/config/config.ts';
import type { Resolver } from '../../src/content/fetch/resolver.ts';
import type { ParserPool } from '../../src/content/parse/pool/pool.ts';
import type { DatabaseTarget } from '../../src/db/address.ts';
import type { Database } from '../../src/db/database.ts';
import type { ComputingThreads } from '../../src/knowledge/computing/threads.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { LogLevel } from '../../src/lib/log.ts';
import type { Timeouts } from '../../src/lib/timeouts.ts';
import type { Provisioner } from './provisioner.ts';
import type { ApiOptions, ApiResponse } from './request.ts';

export type TestServerOptions = {
  /** Settings in addition to those of all tests, as environment variables. */
  env?: Record<string, string>;
  clock?: Clock;
  /** Resolves host names for the guarded fetch. */
  resolve?: Resolver;
  /** Replaces the usual times; the server reads them for each piece of work. */
  timeouts?: Readonly<Timeouts>;
  /** The lowest log level written to standard error. Default `error`. */
  logLevel?: LogLevel;
  /** The folder of a built documentation site. Without it, the server has none, even if this clone has built it. */
  site?: string;
  /** Running parsers, which the caller closes. By default, servers with the same settings share them. */
  parser?: ParserPool;
  /** Threads for searches, which the caller closes. By default, the server has its own. */
  threads?: ComputingThreads;
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
  /** With two cells, the services of the directory's database. */
  home?: Services;
  dataDir: string;
  /** Sends one request. The type parameter is the type of the response body: `api<{ id: string }>('GET', …)`. */
  api<T = Record<string, unknown>>(method: string, path: string, options?: ApiOptions): Promise<ApiResponse<T>>;
  /** Creates apps, orgs, users and their credentials by SQL, independent of the routes. */
  provision: Provisioner;
  close(): Promise<void>;
};

/** The settings of all tests. */
export function readTestConfig(dataDir: string, env: Record<string, string> = {}) {
  return readConfig({
    PORT: '0',
    QUARRY_DATA_DIR: dataDir,
    QUARRY_SECRET: randomBytes(32).toString('hex'),
    QUARRY_PARSE_WORKERS: '1',
    // Tests also run where the system isolates no process.
    QUARRY_PARSE_NETWORK: 'shared',
    QUARRY_DB_POOL: '6',
    ...env,
  });
}
