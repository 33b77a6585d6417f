import { readConfig } from '../config.ts';
import { migrate } from '../db/migrate.ts';
import { migrateJobs } from '../jobs/migrate.ts';
import { createLogger } from '../log.ts';
import { withDatabase } from './with-database.ts';

/** `quarry migrate`: applies the migrations of this release, and those of the job queue. */
export async function run(): Promise<number> {
  const config = readConfig();
  const log = createLogger(config.logLevel);
  const applied = await withDatabase(config, log, async (db, target) => {
    const names = await migrate(db);
    await migrateJobs(db, target, log);
    return names;
  });
  process.stdout.write(
    applied.length === 0
      ? 'The database is up to date.\n'
      : `Applied:\n${applied.map((name) => `  ${name}\n`).join('')}`,
  );
  return 0;
}
