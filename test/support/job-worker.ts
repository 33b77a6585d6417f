import { setTimeout as wait } from 'node:timers/promises';
import { startWorkers } from '../../src/jobs/workers.ts';
import { createLogger } from '../../src/log.ts';

/*
 * A worker process for crash tests, which says on standard output what it takes. Of its tasks `stuck` never finishes,
 * `waits` waits outside for ever, `throws` throws where nobody can catch it, `dies` ends the process, and `calm` is
 * done. Its only argument is the database's address as JSON.
 */
const say = (line: string): void => void process.stdout.write(`${line}\n`);
await startWorkers({
  target: JSON.parse(process.argv[2] ?? 'null'),
  concurrency: 1,
  log: createLogger('silent'),
  onCrash: (task) => say(`crash of ${task}`),
  tasks: {
    async stuck() {
      say('took stuck');
      await new Promise(() => {});
    },
    async waits(_payload, { waitOutside }) {
      say('took waits');
      await waitOutside(() => new Promise(() => {}));
    },
    async throws() {
      say('took throws');
      setTimeout(() => {
        throw new Error('nobody catches this');
      }, 1);
      await new Promise(() => {});
    },
    async dies() {
      say('took dies');
      // The line has to be out before.
      await wait(50);
      process.kill(process.pid, 'SIGKILL');
      await new Promise(() => {});
    },
    async calm() {
      say('took calm');
    },
  },
});
