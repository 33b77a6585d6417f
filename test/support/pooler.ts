import { spawn } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { requireProgram } from '../../scripts/setup.ts';
import type { DatabaseAddress, DatabaseTarget } from '../../src/db/address.ts';
import { openDatabase } from '../../src/db/database.ts';
import { getPostgresAccount, ownAccount } from '../../src/db/postgres-account.ts';
import { findFreePort } from './free-port.ts';
import { endWithThisProcess } from './left-behind.ts';

/** The variable in which test/run.ts passes the address of the pooler. */
export const poolerVariable = 'QUARRY_TEST_RUN_POOLER';

/** The same database behind this run's pooler, or undefined if there is none. */
export function behindPooler(target: DatabaseTarget): DatabaseAddress | undefined {
  const port = process.env[poolerVariable];
  if (port === undefined || typeof target === 'string') return undefined;
  // A server that a test started itself has no pooler.
  if (!target.host.startsWith('/')) return undefined;
  return { host: '127.0.0.1', port: Number(port), database: target.database, username: target.username };
}

/** Starts PgBouncer in transaction mode in front of every database of this server. */
export async function startPooler(target: DatabaseTarget): Promise<{ port: number; close(): Promise<void> }> {
  if (typeof target === 'string') throw new Error('The pooler needs the server that test/run.ts starts.');
  const program = requireProgram('pgbouncer');
  const port = await findFreePort();
  const directory = mkdtempSync(join(tmpdir(), 'quarry-pgbouncer-'));
  const settings = join(directory, 'pgbouncer.ini');
  writeFileSync(settings, settingsOf(target, port), { mode: 0o644 });
  // PgBouncer refuses to run as root. Only the server's own user can enter the directory of its socket.
  const account = ownAccount() ? undefined : getPostgresAccount();
  if (account) for (const path of [directory, settings]) chownSync(path, account.uid, account.gid);
  const child = endWithThisProcess(
    spawn(program, ['-q', settings], { stdio: ['ignore', 'ignore', 'pipe'], ...account }),
  );
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const close = async () => {
    child.kill('SIGKILL');
    await exited;
    rmSync(directory, { recursive: true, force: true });
  };
  for (let tries = 0; ; tries++) {
    const db = openDatabase({ ...target, host: '127.0.0.1', port }, { poolSize: 1, applicationName: 'quarry-test' });
    try {
      await db`select 1`;
      return { port, close };
    } catch (error) {
      if (tries < triesMax && child.exitCode === null) await wait(retryMs);
      else {
        await close();
        throw new Error(`PgBouncer does not serve: ${errors}`, { cause: error });
      }
    } finally {
      await db.end({ timeout: 1 });
    }
  }
}

const triesMax = 200;
const retryMs = 50;

function settingsOf({ host, port, username }: DatabaseAddress, listenPort: number): string {
  return `[databases]
* = host=${host} port=${port} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 2000
default_pool_size = 20
`;
}
