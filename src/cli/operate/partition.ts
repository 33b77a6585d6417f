import { ConfigError, readConfig } from '../../config/config.ts';
import { requireMigrated } from '../../db/migrate.ts';
import { countProcesses, partitionTables } from '../../db/partition.ts';
import { createLogger } from '../../lib/log.ts';
import { withDatabase } from './with-database.ts';

const countMax = 256;

/** `quarry partition`: splits the largest tables by app. Throws ConfigError for a wrong count, or while a server is connected. */
export async function run(options: { count?: string }): Promise<number> {
  const count = Number(options.count);
  if (!Number.isInteger(count) || count < 2 || count > countMax)
    throw new ConfigError([`--count must be a whole number from 2 to ${countMax}`]);
  const config = readConfig();
  const done = await withDatabase(config, createLogger(config.logLevel), async (db) => {
    await requireMigrated(db);
    const connected = await countProcesses(db);
    if (connected > 0) throw new ConfigError([`stop every Quarry process first (open connections: ${connected})`]);
    return partitionTables(db, count);
  });
  process.stdout.write(
    done.length === 0
      ? 'Every large table is partitioned already.\n'
      : `Partitioned by app into ${count} each:\n${done.map((name) => `  ${name}\n`).join('')}`,
  );
  return 0;
}
