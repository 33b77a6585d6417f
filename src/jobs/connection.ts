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
