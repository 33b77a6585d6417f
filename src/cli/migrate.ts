import { readConfig } from '../config.ts';
import { migrate } from '../db/migrate.ts';
import { createLogger } from '../log.ts';
import { withDatabase } from './with-database.ts';

export async function run(): Promise<number> {
  const config = readConfig();
  const applied = await withDatabase(config, createLogger(config.logLevel), (db) => migrate(db));
  process.stdout.write(
    applied.length === 0
      ? 'The database is up to date.\n'
      : `Applied:\n${applied.map((name) => `  ${name}\n`).join('')}`,
  );
  return 0;
}
