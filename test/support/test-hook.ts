import { type AsyncHook, createHook } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { inspect } from 'node:util';

/*
 * Node's test runner follows every promise and every other asynchronous resource with a hook, to know which test calls
 * `test` or `after`. A promise then costs twelve times as much. Only the code that defines tests needs this, so the
 * hook is disabled when a file has defined its tests. Import this module before the first test is defined.
 *
 * An uncaught exception in a test then fails the program and not that test, so it is written with its stack. The runner
 * does not notice one before the first test, such as an import that fails: the exit code tells it.
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

process.on('uncaughtException', (error) => {
  process.exitCode = 1;
  try {
    writeSync(2, `An exception was not caught: ${inspect(error)}\n`);
  } catch {
    // Nobody reads the results. `console.error` would fail with another uncaught exception, without end.
    process.exit(1);
  }
});

/** Follows only what `work` starts, which defines tests and their hooks. */
export async function whileFollowed(work: () => Promise<unknown>): Promise<void> {
  runnersHook?.enable();
  try {
    await work();
  } finally {
    runnersHook?.disable();
  }
}
