import type { DatabaseTarget } from '../db/address.ts';
import type { Database, Db } from '../db/database.ts';
import { findFact, putFact } from '../db/server-facts.ts';
import type { Logger } from '../log.ts';
import { dependencyVersion } from '../version.ts';
import { JobConnections } from './connection.ts';
import { laneIndex, slotIndex } from './lane-queue.ts';
import { setAsideIndex } from './set-aside.ts';

/** The key of the lock that lets one process at a time create the job queue's tables. Any unused number works. */
const lockKey = 7_130_241_003;

/** Migrates the job queue's own tables (schema `graphile_worker`) to the installed release of the library. */
export async function migrateJobs(db: Database, target: DatabaseTarget, log: Logger): Promise<void> {
  const wanted = dependencyVersion('graphile-worker');
  const connection = await db.reserve();
  try {
    await connection`select pg_advisory_lock(${lockKey})`;
    // The library is large, and only its migrations are needed here.
    if ((await findInstalled(connection)) !== wanted) {
      await runLibraryMigrations(target, log);
      await putFact(connection, 'job_queue', wanted);
    }
    await connection.runScript(laneIndex);
    await connection.runScript(slotIndex);
    await connection.runScript(setAsideIndex);
  } finally {
    await connection`select pg_advisory_unlock(${lockKey})`.catch(() => {});
    connection.release();
  }
}

/** The release of the library whose tables the database has. */
async function findInstalled(db: Db): Promise<string | undefined> {
  const [row] = await db<{ exists: boolean }[]>`
    select to_regclass('graphile_worker._private_jobs') is not null as exists`;
  return row?.exists ? findFact(db, 'job_queue') : undefined;
}

async function runLibraryMigrations(target: DatabaseTarget, log: Logger): Promise<void> {
  const { Logger: LibraryLogger, runMigrations } = await import('graphile-worker');
  const logger = new LibraryLogger(() => (level, message, meta) => {
    const line = meta?.error instanceof Error ? { err: meta.error } : {};
    if (level === 'error') log.error(line, message);
    else if (level === 'warning') log.warn(line, message);
    else log.debug(line, message);
  });
  const pgPool = new JobConnections({ target, log }).openPool(1);
  try {
    await runMigrations({ pgPool, logger });
  } finally {
    await pgPool.end();
  }
}
