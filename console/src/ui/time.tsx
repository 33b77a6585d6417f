import { useSyncExternalStore } from 'react';
import { ago } from './format.ts';

const tickMs = 5_000;
/** Made once, because that takes longer than all else in a row of a table. */
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });
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
  return (
    <time dateTime={at} title={exact.format(date)}>
      {ago(date, Math.max(clock, Math.min(Date.now(), date.getTime())))}
    </time>
  );
}
