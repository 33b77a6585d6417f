import { readConfig } from '../config/config.ts';
import type { TaskName } from '../jobs/task-names.ts';
import { serveTrial } from '../jobs/trial.ts';
import { createLogger } from '../lib/log.ts';
import { traceIds } from '../tracing/trace.ts';
import { createServer } from './server.ts';
import { createServices } from './services.ts';

/* The program of a process that runs one suspected job and nothing else. It serves no requests. */
serveTrial(async ({ target, baseUrl, task }) => {
  const config = readConfig();
  const log = createLogger(config.logLevel, config.otlpEndpoint === undefined ? undefined : traceIds);
  const services = await createServices(config, log, { database: target });
  services.setListeningUrl(baseUrl);
  const { work } = await createServer(services);
  const run = work.tasks[task as TaskName];
  if (run === undefined) throw new Error(`There is no task "${task}".`);
  return { run, log };
});
