import { readlinkSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';

/** The place of this thread under `/proc`, on Linux. */
export type ThreadStarted = { threadPath: string | undefined };

/** What tenants wrote gives way to the server and its database. Linux alone has priorities of threads. */
function lowerPriority(): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL);
    return readlinkSync('/proc/thread-self');
  } catch {
    // No such right, or no /proc: then it runs like the rest, by the wall clock.
    return undefined;
  }
}

parentPort?.postMessage({ threadPath: lowerPriority() } satisfies ThreadStarted);
// Loading takes longer than most expressions, so it comes after the priority.
await import('./expression-thread.ts');
