import { readConfig } from '../../config/config.ts';
import type { Database } from '../../db/database.ts';
import { requireMigrated } from '../../db/migrate.ts';
import { listSetAside, retrySetAside } from '../../jobs/set-aside.ts';
import { createLogger } from '../../lib/log.ts';
import { withDatabase } from './with-database.ts';

const shownMax = 1_000;

/** Shows the background jobs that are set aside, and why. */
export function list(options: { json?: boolean }): Promise<number> {
  return onDatabase(async (db) => {
    const jobs = await listSetAside(db, shownMax);
    if (options.json === true) process.stdout.write(`${JSON.stringify(jobs)}\n`);
    else if (jobs.length === 0) process.stdout.write('No job is set aside.\n');
    else
      for (const { id, task, payload, reason } of jobs)
        process.stdout.write(`${id}  ${task}  ${JSON.stringify(payload)}\n    ${reason.split('\n', 1)[0]}\n`);
    return 0;
  });
}

/** Retries a job that is set aside. Exit code 1 when no such job exists. */
export async function retry(id: string): Promise<number> {
  if (!/^\d{1,18}$/.test(id)) {
    process.stderr.write(`${id} is not the number of a job.\n`);
    return 2;
  }
  return onDatabase(async (db) => {
    if (await retrySetAside(db, id)) return 0;
    process.stderr.write(`No job ${id} is set aside.\n`);
    return 1;
  });
}

function onDatabase(work: (db: Database) => Promise<number>): Promise<number> {
  const config = readConfig();
  return withDatabase(config, createLogger(config.logLevel), async (db) => {
    await requireMigrated(db);
    return work(db);
  });
}
