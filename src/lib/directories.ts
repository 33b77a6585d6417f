import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a directory and its missing parents. Returns the topmost that it created; undefined if there was nothing to
 * create. Node's own `recursive` never returns where the system refuses a child of an existing directory with ENOENT,
 * as Linux does below `/proc`.
 * @param mode of those that it creates
 */
export function createDirectories(path: string, mode = 0o777): string | undefined {
  if (createOne(path, mode, 'ENOENT')) return path;
  if (isDirectory(path)) return undefined;
  const topmost = createDirectories(dirname(path), mode);
  createOne(path, mode);
  return topmost ?? path;
}

/** Returns whether it created the directory: not if it exists, nor if the system returns the tolerated error. */
function createOne(path: string, mode: number, tolerated?: string): boolean {
  try {
    mkdirSync(path, { mode });
    return true;
  } catch (error) {
    const isTolerated = (error as NodeJS.ErrnoException).code === tolerated && dirname(path) !== path;
    if (!isTolerated && !isDirectory(path)) throw error;
    return false;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
