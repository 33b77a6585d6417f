import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Gives a directory a small file system of its own. False if this process may not. */
export function mountSmall(directory: string, size: string): boolean {
  const options = ['-t', 'tmpfs', '-o', `size=${size},mode=755`, 'tmpfs', directory];
  return process.getuid?.() === 0 && spawnSync('mount', options, { stdio: 'ignore' }).status === 0;
}

export function unmount(directory: string): void {
  spawnSync('umount', [directory]);
}

/** Takes every free byte of a directory's file system, including bytes freed later, until it is stopped. */
export function keepFull(directory: string): () => void {
  const path = join(directory, 'filler');
  const file = openSync(path, 'w', 0o600);
  const fill = () => {
    for (const size of [1024 * 1024, 4_096, 1]) for (;;) if (!fits(file, size)) break;
  };
  fill();
  const timer = setInterval(fill, 2);
  return () => {
    clearInterval(timer);
    closeSync(file);
    rmSync(path);
  };
}

function fits(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) === size;
  } catch {
    return false;
  }
}
