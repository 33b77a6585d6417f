import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { DatabaseAddress } from '../../src/db/address.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { canReach, getPostgresAccount, ownAccount } from '../../src/db/postgres-account.ts';
import { copyBinaries, findBinaries } from '../../src/db/postgres-binaries.ts';
import { postgresEnvironment } from '../../src/db/postmaster.ts';
import { findFreePort } from './free-port.ts';
import { endWithThisProcess } from './left-behind.ts';
import { childrenOf, signal } from './processes.ts';

type TestPostgres = {
  address: DatabaseAddress;
  /** A small pool for the test itself. */
  db: Database;
  /** The process id of the postmaster. */
  pid: number;
  /** Ends the server and all of its processes, as a power cut of its machine would. */
  kill(): Promise<void>;
};

type PostgresPair = {
  primary: TestPostgres;
  /** Receives every commit of the primary. With `synchronous`, before the commit is acknowledged. */
  standby: TestPostgres;
  /** One URL that names both, the primary first. */
  url: string;
  close(): Promise<void>;
};

/** A primary and its streaming standby, both on loopback, of the PostgreSQL that the project installs. */
export async function startPostgresPair({ synchronous }: { synchronous: boolean }): Promise<PostgresPair> {
  const account = ownAccount() ? undefined : getPostgresAccount();
  const installed = findBinaries();
  const reachable = account === undefined || canReach(account, join(installed.directory, 'bin'));
  const programs = join((reachable ? installed : copyBinaries(installed, '/var/lib/quarry')).directory, 'bin');
  const root = mkdtempSync(join(tmpdir(), 'quarry-pair-'));
  if (account) chownSync(root, account.uid, account.gid);
  const [first, second] = [join(root, 'primary'), join(root, 'standby')];
  const run = { cwd: '/', env: postgresEnvironment, ...account };
  execFileSync(join(programs, 'initdb'), [...initOptions, '-D', first], { ...run, stdio: 'ignore' });
  appendFileSync(join(first, 'pg_hba.conf'), 'host replication all 127.0.0.1/32 trust\n');
  // The cluster is stopped, so a copy of its files is a base backup.
  execFileSync('cp', ['-a', first, second], run);
  writeFileSync(join(second, 'standby.signal'), '');
  const ports = [await findFreePort(), await findFreePort()] as const;
  const started: TestPostgres[] = [];
  const start = async (cluster: string, port: number, settings: Record<string, string>) => {
    const all = { ...commonSettings, port: String(port), ...settings };
    const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const child = endWithThisProcess(
      spawn(join(programs, 'postgres'), ['-D', cluster, ...options], { ...run, stdio: 'ignore' }),
    );
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const address = { host: '127.0.0.1', port, database: 'postgres', username: 'quarry' };
    const db = openDatabase(address, { poolSize: 2, applicationName: 'quarry-test' });
    const pid = child.pid ?? 0;
    const kill = async () => {
      const backends = child.exitCode === null && child.signalCode === null ? childrenOf(pid) : [];
      child.kill('SIGKILL');
      for (const backend of backends) signal(backend, 'SIGKILL');
      await ended;
    };
    const server = { address, db, pid, kill };
    started.push(server);
    await untilItServes(db, () => child.exitCode !== null);
    return server;
  };
  const close = async () => {
    for (const { db, kill } of started) {
      await db.end({ timeout: 1 });
      await kill();
    }
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const waits = { synchronous_standby_names: synchronous ? '*' : '' };
    const primary = await start(first, ports[0], waits);
    const follows = { primary_conninfo: `host=127.0.0.1 port=${ports[0]} user=quarry` };
    const standby = await start(second, ports[1], follows);
    const [one, other] = ports.map((port) => `127.0.0.1:${port}`);
    return { primary, standby, url: `postgres://quarry@${one},${other}/postgres`, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const initOptions = ['-U', 'quarry', '--auth=trust', '--encoding=UTF8', '--no-sync', '--no-instructions'].concat(
  ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'], // like the embedded one
);
/** Killed processes lose nothing that was written, because the machine itself keeps running. */
const commonSettings = {
  ...{ listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: '200' },
  ...{ fsync: 'off', wal_level: 'replica', wal_keep_size: '512MB', hot_standby: 'on', jit: 'off', timezone: 'UTC' },
};
const startTriesMax = 600;
const startPollMs = 50;

async function untilItServes(db: Database, hasEnded: () => boolean): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await db`select 1`;
      return;
    } catch (error) {
      if (tries === startTriesMax || hasEnded()) throw error;
      await wait(startPollMs);
    }
  }
}
