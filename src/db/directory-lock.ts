import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

export type DirectoryLock = { release(): void };

/** Another living process holds the directory; `pid` when it could be read. */
export class DirectoryLockedError extends Error {
  readonly pid: number | undefined;

  constructor(directory: string, pid: number | undefined) {
    super(
      `Another Quarry server${pid === undefined ? '' : ` (process ${pid})`} is using the data directory ${directory}. ` +
        'Stop it first, or give this one its own QUARRY_DATA_DIR.',
    );
    this.name = 'DirectoryLockedError';
    this.pid = pid;
  }
}

/**
 * Takes the directory for this process until `release()` or the process's end, kill -9 included.
 * The lock is the operating system's own lock on a file, which Node offers only through SQLite's exclusive
 * transaction: it needs no judgement about stale files, reused process numbers or containers that share a volume.
 * @throws DirectoryLockedError when another process holds it.
 */
export function lockDirectory(directory: string): DirectoryLock {
  const pidFile = join(directory, 'server.pid');
  const database = new DatabaseSync(join(directory, 'server.lock'));
  try {
    database.exec('begin exclusive');
  } catch (error) {
    database.close();
    if (!isBusy(error)) throw error;
    throw new DirectoryLockedError(directory, readPid(pidFile));
  }
  // Only for the message above: the lock itself never depends on it.
  writeFileSync(pidFile, `${process.pid}\n`);
  let held = true;
  return {
    release() {
      if (held) database.close();
      held = false;
    },
  };
}

const sqliteBusy = 5;

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy;
}

function readPid(file: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(file, 'utf8'), 10) || undefined;
  } catch {
    return undefined;
  }
}
