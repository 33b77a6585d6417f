import { AsyncLocalStorage } from 'node:async_hooks';

/** Something threw where nobody can catch it: in a callback, a stream or a promise that a library forgot. */
export class UncaughtError extends Error {
  constructor(cause: unknown) {
    super(`An exception was not caught: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'UncaughtError';
  }
}

const fails = new AsyncLocalStorage<(error: UncaughtError) => void>();
let listens = false;

/**
 * Does work so that an exception which nobody catches rejects the promise and does not end the process, wherever the
 * work has led to it. The rest of the work is left to end by itself; break it off by its own signal.
 */
export function contain<T>(work: () => Promise<T>): Promise<T> {
  if (!listens) process.on('uncaughtException', failOrEnd);
  listens = true;
  return new Promise((resolve, reject) => {
    fails.run(reject, () => work().then(resolve, reject));
  });
}

function failOrEnd(error: unknown): void {
  const fail = fails.getStore();
  if (fail !== undefined) fail(new UncaughtError(error));
  // As without any listener, unless another one has taken over, as test runners do.
  else if (process.listenerCount('uncaughtException') === 1) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  }
}
