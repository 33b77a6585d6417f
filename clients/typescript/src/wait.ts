import { QuarryError } from './errors.ts';

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

/**
 * Waits by the stream until the state has ended, or by looking where there is no stream: a run that an event or a
 * schedule started has none (404), and an app has only so many at a time (429).
 */
export async function waitByStream<T>(
  stream: AsyncIterable<{ data: T }>,
  look: () => Promise<T>,
  ended: (state: T) => boolean,
  signal?: AbortSignal,
): Promise<T> {
  try {
    for await (const { data } of stream) if (ended(data)) break;
  } catch (error) {
    if (!(error instanceof QuarryError && (error.status === 404 || error.status === 429))) throw error;
  }
  return poll(look, ended, signal);
}
