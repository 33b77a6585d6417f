import type { Config } from '../../config/config.ts';
import type { DatabaseTarget } from '../../db/address.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded.ts';
import type { Logger } from '../../lib/log.ts';

/**
 * Runs work on the configured database: the external one, the embedded one of a running server, or else the embedded
 * one, started for the duration of the work.
 */
export async function withDatabase<T>(
  config: Config,
  log: Logger,
  work: (db: Database, target: DatabaseTarget) => Promise<T>,
): Promise<T> {
  const running = config.databaseDirectUrl ?? config.databaseUrl ?? findEmbeddedPostgres(config.dataDir);
  if (running !== undefined) return onTarget(running, work, config.prepare === 'on');
  const embedded = await startEmbeddedPostgres({ dataDir: config.dataDir, log });
  try {
    return await onTarget(embedded.address, work);
  } finally {
    await embedded.stop();
  }
}

async function onTarget<T>(
  target: DatabaseTarget,
  work: (db: Database, target: DatabaseTarget) => Promise<T>,
  prepare = true,
): Promise<T> {
  const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-cli', prepare });
  try {
    return await work(db, target);
  } finally {
    await db.end({ timeout: 5 });
  }
}
