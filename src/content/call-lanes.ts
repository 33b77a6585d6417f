import { Lanes } from '../lanes.ts';

const waitingMax = 10_000;

type CallInLane = <Result>(
  lane: string,
  signal: AbortSignal | undefined,
  call: () => Promise<Result>,
) => Promise<Result>;

/**
 * Bounds the calls to a service that apps share: `callsMax` concurrent calls of one app, and as many again for the
 * others, so that no app keeps another waiting. A call that is aborted leaves its lane with the signal's reason.
 */
export function openCallLanes(callsMax: number, tooMany: () => Error): CallInLane {
  const lanes = new Lanes<() => void>({ slots: 2 * callsMax, waitingMax });
  const next = () => {
    for (let turn = lanes.take(); turn; turn = lanes.take()) turn.item();
  };
  return async (lane, signal, call) => {
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        if (lanes.remove(lane, begin)) reject(signal?.reason);
      };
      if (!lanes.add(lane, begin)) return reject(tooMany());
      signal?.addEventListener('abort', leave, { once: true });
      next();
    });
    const startedMs = performance.now();
    try {
      return await call();
    } finally {
      lanes.release(lane, performance.now() - startedMs);
      next();
    }
  };
}
