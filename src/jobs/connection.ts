import { Logger as WorkerLogger } from 'graphile-worker';
import pg from 'pg';
import { type DatabaseTarget, pgConnection } from '../db/address.ts';
import type { Logger } from '../log.ts';

/** Connections of the driver that the job library requires. */
export function openJobPool(target: DatabaseTarget, size: number, log: Logger): pg.Pool {
  const pool = new pg.Pool({ ...pgConnection(target), max: size, application_name: 'quarry-jobs' });
  const report = (error: Error) => log.warn({ err: error }, 'Lost a database connection of the job queue');
  // Without a listener, either event would end the process. The library reconnects by itself.
  pool.on('error', report);
  pool.on('connect', (client) => client.on('error', report));
  return pool;
}

/** Passes the job library's log lines to our log. Its "info" reports every job, so it is our "debug". */
export function workerLogger(log: Logger): WorkerLogger {
  return new WorkerLogger(() => (level, message, meta) => {
    const line = meta?.error instanceof Error ? { err: meta.error } : {};
    // Errors of tasks are logged where tasks are run, with the job's name and without its payload.
    if (meta?.failure === true) log.debug(message);
    else if (level === 'error') log.error(line, message);
    else if (level === 'warning') log.warn(line, message);
    else log.debug(line, message);
  });
}
