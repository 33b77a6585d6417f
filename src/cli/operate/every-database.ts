import { refuseForeign } from '../../cells/identity.ts';
import { readCells } from '../../cells/settings.ts';
import { withCell } from '../../cells/status.ts';
import { findIdentity, findTables } from '../../cells/store.ts';
import type { Config } from '../../config/config.ts';
import type { Database } from '../../db/database.ts';
import type { Logger } from '../../lib/log.ts';
import { describeError } from '../explain.ts';
import { withDatabase } from './with-database.ts';

/**
 * Runs work on the configured database, and with cells on that of each cell afterwards, one after the other. `cell` is
 * its name; undefined for the database of DATABASE_URL. Returns the largest exit code; a cell that cannot be used is 1.
 */
export function onEveryDatabase(
  config: Config,
  log: Logger,
  work: (db: Database, cell: string | undefined) => Promise<number>,
): Promise<number> {
  const cells = readCells(config)?.filter(({ target }) => target !== undefined) ?? [];
  return withDatabase(config, log, async (directory) => {
    let code = await work(directory, undefined);
    for (const cell of cells) {
      const { name } = cell;
      process.stdout.write(`\nCell ${name}:\n`);
      try {
        const installation = await findInstallation(directory);
        const exitCode = await withCell(cell, directory, async (db) => {
          if (installation !== undefined) await refuseForeign(directory, db, { name, installation });
          return work(db, name);
        });
        code = Math.max(code, exitCode);
      } catch (error) {
        process.stdout.write(`${describeError(error)}\n`);
        code = Math.max(code, 1);
      }
    }
    return code;
  });
}

async function findInstallation(directory: Database): Promise<string | undefined> {
  const { hasIdentity } = await findTables(directory);
  return hasIdentity ? (await findIdentity(directory))?.installation : undefined;
}
