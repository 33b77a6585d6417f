import { AsyncLocalStorage } from 'node:async_hooks';

/** An exception that no caller can catch: from a callback, a stream or a forgotten promise in a library. */
export class UncaughtError extends Error {
  constructor(cause: unknown) {
    super(`An exception was not caught: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'UncaughtError';
  }
}

const fails = new AsyncLocalStorage<(error: UncaughtError) => void>();
let listens = false;

/**
 * Runs work so that its uncaught exceptions reject the returned promise instead of ending the process. The remaining
 * work continues: abort it with its own signal.
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
  // Behaves as if there were no listener, unless another one, such as a test runner's, is registered.
  else if (process.listenerCount('uncaughtException') === 1) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  }
}
