import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from '../../src/boot/server.ts';
import { createServices, type Services } from '../../src/boot/services.ts';
import { createLogger } from '../../src/lib/log.ts';
import { traceIds } from '../../src/tracing/trace.ts';
import { startInCell } from './cells.ts';
import { testsCells } from './cells-of-process.ts';
import { createTestDatabase } from './database.ts';
import './lock-order.ts';
import { behindPooler } from './pooler.ts';
import { Provisioner } from './provisioner.ts';
import { sendRequest } from './request.ts';
import { findExpressions, findParsers } from './shared-processes.ts';
import { readTestConfig, type TestServer, type TestServerOptions } from './test-server.ts';

export { type ApiOptions, type ApiResponse, type ErrorBody, sendExactPath, sendRequest } from './request.ts';
export type { TestServer, TestServerOptions } from './test-server.ts';

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
  if (testsCells) return startInCell({ ...options, database, dataDir, secret: installed?.secret, removeAll });
  let services: Services | undefined;
  try {
    const config = readTestConfig(dataDir, {
      ...(installed?.secret === undefined ? {} : { QUARRY_SECRET: installed.secret }),
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
      timeouts: options.timeouts,
      expressions: findExpressions(options),
      threads: options.threads,
    });
    const server = await createServer(services, { site: options.site });
    const baseUrl = await server.listen();
    await services.startWorkers(server.work);
    // At a full hour, a sweep would take what a test has aged and still reads.
    const rare = (server.work.recurring ?? []).filter(({ everySeconds }) => everySeconds >= 600);
    await database.db`
      update jobs set run_at = run_at + interval '1 year'
      where key = any(${rare.map(({ task }) => `recurring/${task}`)}::text[]) and locked_by is null`;
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
