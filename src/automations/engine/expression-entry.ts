import { flushCompileCache } from 'node:module';
import { Worker } from 'node:worker_threads';

/** Ends this process when its parent is gone, even while an expression runs that never ends. */
const watchParent = `
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
  }, 1_000);
`;
// Without options of its own, it would inherit the limits of memory.
new Worker(watchParent, { eval: true, execArgv: [], resourceLimits: { maxOldGenerationSizeMb: 8 } }).unref();
process.on('disconnect', () => process.exit());

await import('./expression-process.ts');
// Written now, because the process may be killed.
flushCompileCache();
