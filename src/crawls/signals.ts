/**
 * Returns a signal for one page that follows the turn's signal. Listeners left on it are freed with the page. On the
 * turn's own signal, the listeners of ten thousand pages would stay in memory.
 */
export function linkedSignal(outer: AbortSignal): { signal: AbortSignal; unlink: () => void } {
  const controller = new AbortController();
  const follow = (): void => controller.abort(outer.reason);
  if (outer.aborted) follow();
  else outer.addEventListener('abort', follow, { once: true });
  return { signal: controller.signal, unlink: () => outer.removeEventListener('abort', follow) };
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
