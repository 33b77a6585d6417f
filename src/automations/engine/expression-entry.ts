import { readlinkSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';

/** This thread's directory under `/proc`, on Linux. */
export type ThreadStarted = { threadPath: string | undefined };

/** Gives tenants' expressions a lower priority than the server and its database. Only Linux has thread priorities. */
function lowerPriority(): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    setPriority(0, Math.min(constants.priority.PRIORITY_LOW, getPriority() + constants.priority.PRIORITY_BELOW_NORMAL));
    return readlinkSync('/proc/thread-self');
  } catch {
    // Not permitted, or no /proc: the thread runs at normal priority.
    return undefined;
  }
}

parentPort?.postMessage({ threadPath: lowerPriority() } satisfies ThreadStarted);
// Loading takes longer than most expressions, so the priority is set first.
await import('./expression-thread.ts');
