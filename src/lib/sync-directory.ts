import { closeSync, fsync, fsyncSync, openSync } from 'node:fs';
import { promisify } from 'node:util';

const sync = promisify(fsync);

/**
 * A new name is durable only after its directory is synced. Windows cannot open directories and syncs names itself. Only
 * the sync waits for the disk: another thread would take several times as long to open and to close the directory.
 */
export async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return;
  const descriptor = openSync(directory, 'r');
  try {
    await sync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** The same for code that runs at startup. */
export function syncDirectoryBlocking(directory: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(directory, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
