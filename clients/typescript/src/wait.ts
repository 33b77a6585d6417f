/** Waits, and rejects with the signal's reason as soon as it is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

/** Looks with growing pauses, from 100 ms to 5 s, until the state has ended. */
export async function poll<T>(look: () => Promise<T>, ended: (state: T) => boolean, signal?: AbortSignal): Promise<T> {
  for (let waitMs = 100; ; waitMs = Math.min(waitMs * 1.5, 5_000)) {
    const state = await look();
    if (ended(state)) return state;
    await pause(waitMs, signal);
  }
}
