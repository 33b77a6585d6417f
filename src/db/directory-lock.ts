import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { EmbeddedPostgresError } from './postgres-error.ts';

export type DirectoryLock = { release(): void };

/** Another running process holds the directory. `pid` is set if it could be read. */
export class DirectoryLockedError extends Error {
  readonly pid: number | undefined;

  constructor(directory: string, pid: number | undefined) {
    super(
      `Another Quarry server${pid === undefined ? '' : ` (process ${pid})`} is using the data directory ${directory}. ` +
        'Stop it first, or set a different QUARRY_DATA_DIR for this one.',
    );
    this.name = 'DirectoryLockedError';
    this.pid = pid;
  }
}

/**
 * Locks the directory for this process until `release()` or the end of the process, even by kill -9.
 * It uses an operating system lock on a file, which Node offers only through SQLite's exclusive transaction. This
 * avoids guesses about stale files, reused process ids or containers that share a volume.
 * @throws DirectoryLockedError if another process holds it.
 * @throws EmbeddedPostgresError if this user may not write there.
 */
export function lockDirectory(directory: string): DirectoryLock {
  const pidFile = join(directory, 'server.pid');
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(join(directory, 'server.lock'));
    database.exec('begin exclusive');
    // Only for the message below: the lock never depends on it.
    writeFileSync(pidFile, `${process.pid}\n`);
  } catch (error) {
    database?.close();
    if (isBusy(error)) throw new DirectoryLockedError(directory, readPid(pidFile));
    throw new EmbeddedPostgresError(
      `The data directory ${directory} cannot be written by this user: ${String(error)}. ` +
        'Run Quarry as the user that created it, or set another QUARRY_DATA_DIR.',
      error,
    );
  }
  const held = database;
  let isHeld = true;
  return {
    release() {
      if (isHeld) held.close();
      isHeld = false;
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
