import { type AsyncHook, createHook } from 'node:async_hooks';

/*
 * Node's test runner follows every promise and every other asynchronous resource with a hook, to know which test calls
 * `test` or `after`. A promise then costs twelve times as much. Only the code that defines tests needs this, so the
 * hook is disabled when a file has defined its tests. Import this module before the first test is defined.
 *
 * An uncaught exception in a test then fails the program and not that test, so it is written with its stack.
 */
let runnersHook: AsyncHook | undefined;

const methods = Object.getPrototypeOf(createHook({})) as AsyncHook;
const enable = methods.enable;
methods.enable = function (this: AsyncHook): AsyncHook {
  // The runner's is the first; a later one is the tests' own.
  methods.enable = enable;
  runnersHook = this;
  return enable.call(this);
};

process.on('uncaughtException', (error) => console.error('An exception was not caught:', error));

/** Follows only what `work` starts, which defines tests and their hooks. */
export async function whileFollowed(work: () => Promise<unknown>): Promise<void> {
  runnersHook?.enable();
  try {
    await work();
  } finally {
    runnersHook?.disable();
  }
}
