import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

/** Gives a directory a small file system of its own. False if this process may not. */
export function mountSmall(directory: string, size: string): boolean {
  const options = ['-t', 'tmpfs', '-o', `size=${size},mode=755`, 'tmpfs', directory];
  return process.getuid?.() === 0 && spawnSync('mount', options, { stdio: 'ignore' }).status === 0;
}

export function unmount(directory: string): void {
  spawnSync('umount', [directory]);
}

/**
 * Takes every free byte of a directory's file system, including bytes freed later, until it is stopped. A thread does so:
 * it takes seconds on a busy machine, and this process may have proxies in front of other databases.
 */
export async function keepFull(directory: string): Promise<() => Promise<void>> {
  const path = join(directory, 'filler');
  const filler = new Worker(new URL('./disk-filler.ts', import.meta.url), { workerData: path });
  await once(filler, 'message');
  return async () => {
    await filler.terminate();
    rmSync(path);
  };
}
