import { readConfig } from '../../config/config.ts';
import { migrate } from '../../db/migrate.ts';
import { createLogger } from '../../lib/log.ts';
import { withDatabase } from './with-database.ts';

/** `quarry migrate`: applies the migrations of this release. */
export async function run(): Promise<number> {
  const config = readConfig();
  const log = createLogger(config.logLevel);
  const applied = await withDatabase(config, log, (db) => migrate(db));
  process.stdout.write(
    applied.length === 0
      ? 'The database is up to date.\n'
      : `Applied:\n${applied.map((name) => `  ${name}\n`).join('')}`,
  );
  return 0;
}
