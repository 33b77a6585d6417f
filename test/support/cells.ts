import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepareCells } from '../../src/boot/cells.ts';
import { createServer } from '../../src/boot/server.ts';
import { createServices, type Services } from '../../src/boot/services.ts';
import type { DatabaseTarget } from '../../src/db/address.ts';
import type { Database } from '../../src/db/database.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { behindPooler } from './pooler.ts';
import { Provisioner } from './provisioner.ts';
import { type ApiOptions, sendRequest } from './request.ts';
import { findExpressions, findParsers } from './shared-processes.ts';
import { readTestConfig, type TestServer, type TestServerOptions } from './test-server.ts';

/** The cell of the apps that tests provision. The directory's database is a second cell, which must see none of them. */
const cellName = 'tested';

/** The directories of the databases that are cells, for further processes on them. */
const directories = new Map<string, { directory: TestDatabase; users: number }>();

type CellOptions = TestServerOptions & {
  database: { target: DatabaseTarget; db: Database };
  dataDir: string;
  secret: string | undefined;
  removeAll(): Promise<void>;
};

/** Starts a server whose tests run in a cell, while the directory is another database. */
export async function startInCell(options: CellOptions): Promise<TestServer> {
  const { database, dataDir, removeAll } = options;
  const name = JSON.stringify(database.target);
  const known = directories.get(name) ?? { directory: await createTestDatabase(), users: 0 };
  directories.set(name, known);
  known.users += 1;
  const { directory } = known;
  const drop = async () => {
    known.users -= 1;
    if (known.users === 0) {
      directories.delete(name);
      await directory.drop();
    }
    await removeAll();
  };
  let home: Services | undefined;
  try {
    const pooled = behindPooler(directory.target);
    const config = readTestConfig(dataDir, {
      ...(options.secret === undefined ? {} : { QUARRY_SECRET: options.secret }),
      ...(pooled === undefined ? {} : { QUARRY_PREPARE: 'off' }),
      ...options.env,
    });
    home = await createServices(config, createLogger(options.logLevel ?? 'error'), {
      ...{ database: pooled ?? directory.target, directDatabase: directory.target, cell: 'empty' },
      parser: options.parser ?? (options.logLevel === undefined ? findParsers(config) : undefined),
      ...(options.clock === undefined ? {} : { clock: options.clock }),
      resolve: options.resolve,
      timeouts: options.timeouts,
      expressions: findExpressions(options),
      threads: options.threads,
    });
    const target = behindPooler(database.target) ?? database.target;
    const cells = await prepareCells(home, [
      { name: 'empty', target: undefined, directTarget: undefined, acceptsNewApps: false },
      { name: cellName, target, directTarget: database.target, acceptsNewApps: true },
    ]);
    const server = await createServer(home, { site: options.site, front: cells.front, cells: cells.home });
    await cells.start(server);
    await cells.set.settled();
    const cell = cells.opened.get(cellName);
    if (cell === undefined) throw new Error('The cell of the tests could not be opened.');
    const baseUrl = await server.listen();
    await home.startWorkers(server.work);
    home.setReady();
    const opened = home;
    return {
      ...{ baseUrl, dataDir, db: database.db, services: cell.services, server: cell.server, home: opened },
      api: (method, path, apiOptions) => sendRequest(baseUrl, method, path, apiOptions),
      provision: new Provisioner(database.db, home.secrets, home.clock, { db: directory.db, cell: cellName }),
      async close() {
        await Promise.all([server.close(), cells.close()]);
        await opened.close();
        await drop();
      },
    };
  } catch (error) {
    await home?.close();
    await drop();
    throw error;
  }
}

type Cells = { first: TestDatabase; second: TestDatabase; dataDir: string; secret: string };

/**
 * Starts a server with the cell `eu1` in the directory's database, and `eu2` in another one. Its worker takes any move
 * that nobody works on: a test that moves an app itself starts it with `withoutWorkers`.
 * @param beside another process of the same installation, which removes the databases.
 */
export async function startTwoCells(env: Record<string, string> = {}, beside?: Cells) {
  const { first, second, dataDir, secret } = beside ?? (await createCells());
  const config = readTestConfig(dataDir, { QUARRY_SECRET: secret, ...env });
  const home = await createServices(config, createLogger('silent'), {
    ...{ database: first.target, directDatabase: first.target, cell: 'eu1', parser: findParsers(config) },
  });
  const cells = await prepareCells(home, [
    { name: 'eu1', target: undefined, directTarget: undefined, acceptsNewApps: true },
    { name: 'eu2', target: second.target, directTarget: second.target, acceptsNewApps: true },
  ]);
  const server = await createServer(home, { front: cells.front, cells: cells.home });
  await cells.start(server);
  await cells.set.settled();
  const baseUrl = await server.listen();
  await home.startWorkers(server.work);
  home.setReady();
  return {
    ...{ home, cells, baseUrl, first, second, dataDir, secret },
    api: <T = Record<string, unknown>>(method: string, path: string, options?: ApiOptions) =>
      sendRequest<T>(baseUrl, method, path, options),
    async close() {
      await Promise.all([server.close(), cells.close()]);
      await home.close();
      if (beside !== undefined) return;
      await Promise.all([first.drop(), second.drop()]);
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Settings of a process that runs no jobs and continues no moves. */
export const withoutWorkers = { QUARRY_JOB_WORKERS: '0' };

async function createCells(): Promise<Cells> {
  const [first, second] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-cells-test-'));
  return { first, second, dataDir, secret: randomBytes(32).toString('hex') };
}
