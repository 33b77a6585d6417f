import { useSyncExternalStore } from 'react';
import { ago } from './format.ts';

const tickMs = 5_000;
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

/** One clock for all relative times of the page, so that they never disagree. It stands still while none is shown. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const one of listeners) one();
  }, tickMs);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** A relative time, with the exact moment on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  const clock = useSyncExternalStore(subscribe, () => now);
  if (!at) return <span className="faint">–</span>;
  const date = new Date(at);
  const exact = date.toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'long' });
  return (
    <time dateTime={at} title={exact}>
      {ago(date, Math.max(clock, Math.min(Date.now(), date.getTime())))}
    </time>
  );
}
