import { flushCompileCache } from 'node:module';
import { constants, getPriority, setPriority } from 'node:os';
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

// Tenants' expressions get a lower priority than the server and its database.
try {
  setPriority(0, Math.min(constants.priority.PRIORITY_LOW, getPriority() + constants.priority.PRIORITY_BELOW_NORMAL));
} catch {
  // Not permitted: the process runs at normal priority.
}
// Loading takes longer than most expressions, so the priority is set first.
await import('./expression-process.ts');
// Written now, because the process may be killed.
flushCompileCache();
