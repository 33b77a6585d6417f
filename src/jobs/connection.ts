import pg from 'pg';
import type { DatabaseTarget } from '../db/address.ts';
import { Client } from '../db/client.ts';
import type { Logger } from '../log.ts';

/** Statements of the job queue are short; one without a response is given up, and its connection ended. */
export const jobStatementMsMax = 60_000;

/** Connections of the driver that the job library requires. */
export function openJobPool(target: DatabaseTarget, size: number, log: Logger): pg.Pool {
  const pool = new pg.Pool({ max: size, Client: jobClient(target) });
  const report = (error: Error) => log.warn({ err: error }, 'Lost a database connection of the job queue');
  // Without a listener, either event would end the process. The library reconnects by itself.
  pool.on('error', report);
  pool.on('connect', (client) => client.on('error', report));
  return pool;
}

/** Each new connection leads to the server that is the primary then. */
function jobClient(target: DatabaseTarget): new () => Client {
  return class extends Client {
    constructor() {
      super(target, { application_name: 'quarry-jobs', query_timeout: jobStatementMsMax });
    }
  };
}
