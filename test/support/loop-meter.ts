import { PerformanceObserver } from 'node:perf_hooks';

/**
 * Measures the event loop of this process while the work runs. Returns the processor time of the longest turn of the
 * loop in milliseconds, garbage collection apart: no synchronous section in it took longer. Time that other processes
 * or threads take from this one does not count.
 */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  const turns: { startMs: number; endMs: number; processorMs: number }[] = [];
  const collections: { startMs: number; endMs: number }[] = [];
  const note = (entries: readonly { startTime: number; duration: number }[]) => {
    for (const { startTime, duration } of entries)
      collections.push({ startMs: startTime, endMs: startTime + duration });
  };
  const observer = new PerformanceObserver((list) => note(list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  let ended = false;
  let startMs = performance.now();
  let before = processorMs();
  const turn = () => {
    const endMs = performance.now();
    const now = processorMs();
    if (now - before > worthKeepingMs) turns.push({ startMs, endMs, processorMs: now - before });
    startMs = endMs;
    before = now;
    if (!ended) setTimeout(turn, betweenMs);
  };
  setTimeout(turn, betweenMs);
  try {
    await work();
  } finally {
    ended = true;
  }
  // The turn that ended the work, and the last entries of the observer.
  await new Promise((resolve) => setTimeout(() => setImmediate(resolve), 2 * betweenMs));
  note(observer.takeRecords());
  observer.disconnect();
  return Math.max(0, ...turns.map((each) => each.processorMs - collectedMs(each, collections)));
}

const worthKeepingMs = 1;
/** A pause, because a loop that spins takes the processor from what it measures. */
const betweenMs = 2;

function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** The time of a turn in which the garbage collector stopped it. */
function collectedMs(
  turn: { startMs: number; endMs: number },
  collections: { startMs: number; endMs: number }[],
): number {
  return collections.reduce(
    (sum, { startMs, endMs }) => sum + Math.max(0, Math.min(endMs, turn.endMs) - Math.max(startMs, turn.startMs)),
    0,
  );
}
