import { runMigrations } from 'graphile-worker';
import type { DatabaseTarget } from '../db/address.ts';
import type { Database } from '../db/database.ts';
import type { Logger } from '../log.ts';
import { openJobPool, workerLogger } from './connection.ts';
import { laneIndex } from './lane-queue.ts';
import { setAsideIndex } from './set-aside.ts';

/** One process at a time creates the tables of the job queue. Any number works that no other lock uses. */
const lockKey = 7_130_241_003;

/** Migrates the job queue's own tables (schema `graphile_worker`) to the installed release of the library. */
export async function migrateJobs(db: Database, target: DatabaseTarget, log: Logger): Promise<void> {
  const connection = await db.reserve();
  const pgPool = openJobPool(target, 1, log);
  try {
    await connection`select pg_advisory_lock(${lockKey})`;
    await runMigrations({ pgPool, logger: workerLogger(log) });
    await pgPool.query(laneIndex);
    await pgPool.query(setAsideIndex);
  } finally {
    await connection`select pg_advisory_unlock(${lockKey})`.catch(() => {});
    connection.release();
    await pgPool.end();
  }
}
