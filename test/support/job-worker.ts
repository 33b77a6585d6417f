import { startWorkers } from '../../src/jobs/workers.ts';
import { createLogger } from '../../src/log.ts';

/*
 * A worker process for crash tests: it takes jobs of the task `stuck`, says so on standard output, and never finishes
 * one. Its only argument is the database's address as JSON.
 */
await startWorkers({
  target: JSON.parse(process.argv[2] ?? 'null'),
  concurrency: 1,
  log: createLogger('error'),
  tasks: {
    async stuck() {
      process.stdout.write('took a job\n');
      await new Promise(() => {});
    },
  },
});
