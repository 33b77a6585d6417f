import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../../config/config.ts';
import { DirectoryLockedError } from '../../db/directory-lock.ts';
import { stopEmbeddedPostgres } from '../../db/embedded.ts';
import { createLogger } from '../../lib/log.ts';

const stopTimeoutMs = 15_000;
const lookMs = 50;

/** `quarry stop`: ends the server on the data directory as SIGTERM does, or the PostgreSQL that a killed one left. */
export async function run(): Promise<number> {
  const { dataDir, databaseUrl } = readConfig();
  if (databaseUrl !== undefined) {
    process.stderr.write(
      'DATABASE_URL is set, so no database belongs to the data directory. Stop the processes with your service manager.\n',
    );
    return 1;
  }
  let asked: number | undefined;
  for (let waitedMs = 0; waitedMs < stopTimeoutMs; waitedMs += lookMs) {
    try {
      const wasRunning = await stopEmbeddedPostgres(dataDir, createLogger('error'));
      process.stdout.write(`${describe(asked, wasRunning)}\n`);
      return 0;
    } catch (error) {
      if (!(error instanceof DirectoryLockedError) || error.pid === undefined) throw error;
      if (asked !== error.pid) process.kill(error.pid, 'SIGTERM');
      asked = error.pid;
    }
    await wait(lookMs);
  }
  process.stderr.write(`The server (process ${asked}) did not stop within ${stopTimeoutMs / 1_000} seconds.\n`);
  return 1;
}

function describe(server: number | undefined, hadPostgres: boolean): string {
  if (server !== undefined) return `Stopped the server (process ${server}) and its PostgreSQL.`;
  return hadPostgres
    ? 'Stopped the PostgreSQL that a killed server had left running. Nothing committed is lost.'
    : 'No server and no PostgreSQL runs on this data directory.';
}
