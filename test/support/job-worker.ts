import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createTrial, serveTrial } from '../../src/jobs/trial.ts';
import { startWorkers, type Task } from '../../src/jobs/workers.ts';
import { createLogger, type LogLevel } from '../../src/lib/log.ts';

/*
 * A worker process for crash tests that prints which jobs it takes. Its tasks: `stuck` never finishes, `waits` waits
 * outside forever, `throws` throws where nobody can catch it, `dies` ends the process, `calm` is done, and `hangs`
 * takes a slot forever and prints its app. The arguments are the database's address as JSON, and the log level
 * (default `silent`). Forked, it runs one suspected job.
 */
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const tasks: Record<string, Task> = {
  async stuck() {
    say('took stuck');
    await new Promise(() => {});
  },
  async hangs(payload) {
    say(`took hangs of ${(payload as { appId: string }).appId}`);
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
    // The line must be written first.
    await wait(50);
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => {});
  },
  async calm() {
    say('took calm');
  },
};
const log = createLogger((process.argv[3] ?? 'silent') as LogLevel);
if (process.send)
  serveTrial(async ({ task }) => ({ run: tasks[task] ?? (() => Promise.reject(new Error(task))), log }));
else {
  const target = JSON.parse(process.argv[2] ?? 'null');
  await startWorkers({
    ...{ target, concurrency: 1, log, tasks },
    onCrash: (task) => say(`crash of ${task}`),
    trial: createTrial(fileURLToPath(import.meta.url), () => ({ target, baseUrl: '' })),
  });
}
