import { readdirSync, readFileSync } from 'node:fs';

/** A deadline is stretched to at most this many times its length, however long the process waits. */
const stretchMax = 10;
/** The use of processors is first read after this time, which most documents do not take. */
const firstReadingMs = 1_000;

/** How long the threads of a process have run on a processor so far, and waited for one, in total. */
export type ProcessorUse = { ranMs: number; waitedMs: number };

/**
 * Calls `onEnd` once a process has had this much time. While it has work and other processes have the processors, the
 * time does not count: a busy machine is slow, and the document is not at fault.
 * @returns a function that cancels the deadline
 */
export function startDeadline(timeMs: number, readUse: () => ProcessorUse, onEnd: () => void): () => void {
  const startedMs = performance.now();
  let before: { atMs: number; use: ProcessorUse } | undefined;
  const untilReadingMs = Math.min(firstReadingMs, timeMs / 2);
  let timer = setTimeout(read, untilReadingMs);
  function read(): void {
    before = { atMs: performance.now(), use: readUse() };
    timer = setTimeout(check, startedMs + timeMs - before.atMs);
  }
  function check(): void {
    const now = performance.now();
    const allowedMs = Math.min(timeMs + heldUpMs(now), timeMs * stretchMax);
    const leftMs = allowedMs - (now - startedMs);
    // A timer may end up to a millisecond early.
    if (leftMs <= 1) onEnd();
    else timer = setTimeout(check, leftMs);
  }
  /** The time in which no thread ran, as far as threads waited for a processor: a process that only sleeps has none. */
  function heldUpMs(now: number): number {
    if (before === undefined) return 0;
    const use = readUse();
    const notRunningMs = now - before.atMs - (use.ranMs - before.use.ranMs);
    return Math.max(0, Math.min(notRunningMs, use.waitedMs - before.use.waitedMs));
  }
  return () => clearTimeout(timer);
}

/** Zeros where the system does not say. Linux says it for each thread. */
export function readProcessorUse(pid: number | undefined): ProcessorUse {
  const use = { ranMs: 0, waitedMs: 0 };
  if (process.platform !== 'linux' || pid === undefined) return use;
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      // Nanoseconds on a processor, nanoseconds of waiting for one, and the number of turns (proc(5), schedstat).
      const [ran, waited] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ').map(Number);
      use.ranMs += (ran ?? 0) / 1_000_000;
      use.waitedMs += (waited ?? 0) / 1_000_000;
    }
  } catch {
    // It has ended, or the kernel keeps no such statistics.
  }
  return use;
}

/** The file in which Linux says how long the main thread of a process has run and waited. Parsers may read their own. */
export const ownUseFile = '/proc/self/schedstat';

/** A clock in milliseconds that stands still while this process's main thread waits for a processor. */
export function createWorkClock(readWaitedMs = waitedOfMainThread): () => number {
  let worked = 0;
  let lastMs = performance.now();
  let lastWaitedMs = readWaitedMs();
  return () => {
    const now = performance.now();
    const waitedMs = readWaitedMs();
    worked += Math.max(0, now - lastMs - (waitedMs - lastWaitedMs));
    lastMs = now;
    lastWaitedMs = waitedMs;
    return worked;
  };
}

function waitedOfMainThread(): number {
  try {
    return Number(readFileSync(ownUseFile, 'utf8').split(' ')[1]) / 1_000_000 || 0;
  } catch {
    return 0; // the system does not say, or does not let it be read
  }
}
