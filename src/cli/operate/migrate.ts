import { readConfig } from '../../config/config.ts';
import { migrate } from '../../db/migrate.ts';
import { createLogger } from '../../lib/log.ts';
import { onEveryDatabase } from './every-database.ts';

/** `quarry migrate`: applies the migrations of this release, with cells to one database after the other. */
export function run(): Promise<number> {
  const config = readConfig();
  return onEveryDatabase(config, createLogger(config.logLevel), async (db) => {
    const applied = await migrate(db);
    process.stdout.write(
      applied.length === 0
        ? 'The database is up to date.\n'
        : `Applied:\n${applied.map((name) => `  ${name}\n`).join('')}`,
    );
    return 0;
  });
}
