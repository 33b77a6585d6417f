import { lstatSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { listFiles } from './directory.ts';

const pauseMs = 200;
/** A look takes at most this share of the time, however many files there are. */
const share = 0.05;

/**
 * Yields the paths of these directories and files whose contents changed. It looks at them again and again instead of
 * asking the system for events: that works on every file system, in containers, and with editors that replace a file.
 * Changes are reported when two looks in a row see the same.
 */
export async function* watchPaths(paths: readonly string[], signal: AbortSignal): AsyncGenerator<string[]> {
  let known = paths.map(stateOf);
  let last = known;
  while (!signal.aborted) {
    const started = performance.now();
    const seen = paths.map(stateOf);
    const changed = paths.filter((_, at) => seen[at] !== known[at]);
    const isSettled = seen.every((state, at) => state === last[at]);
    last = seen;
    if (changed.length > 0 && isSettled) {
      known = seen;
      yield changed;
    }
    const tookMs = performance.now() - started;
    await sleep(Math.max(pauseMs, tookMs / share), undefined, { signal }).catch(() => {});
  }
}

function stateOf(path: string): string {
  try {
    const files = lstatSync(path).isDirectory() ? listFiles(path) : [path];
    return files.map(describeFile).join('\n');
  } catch {
    // It does not exist, or disappeared while it was read.
    return '';
  }
}

function describeFile(path: string): string {
  const { ino, size, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true });
  return `${path} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}
