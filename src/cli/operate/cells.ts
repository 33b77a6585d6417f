import { findSecret } from '../../boot/services.ts';
import { claimCell, prepareDirectory, refuseForeign, requireCellSecret } from '../../cells/identity.ts';
import { type CellSettings, readCells } from '../../cells/settings.ts';
import { type CellStatus, inspectCells, withCell } from '../../cells/status.ts';
import { setCellState } from '../../cells/store.ts';
import { type Config, readConfig } from '../../config/config.ts';
import type { DatabaseTarget } from '../../db/address.ts';
import type { Database } from '../../db/database.ts';
import { migrate, requireMigrated } from '../../db/migrate.ts';
import { createLogger } from '../../lib/log.ts';
import { Secrets } from '../../tenancy/secrets.ts';
import { countOf } from '../count.ts';
import { UsageError } from '../errors.ts';
import { withDatabase } from './with-database.ts';

/** Shows every cell. Exit code 1 if servers cannot use one of them. */
export function list(options: { json?: boolean }): Promise<number> {
  return onDirectory(async (directory, cells) => {
    const found = await inspectCells(directory, cells);
    if (options.json === true) process.stdout.write(`${JSON.stringify(found)}\n`);
    else for (const cell of found) process.stdout.write(`${describe(cell)}\n`);
    return found.some(({ problem }) => problem !== undefined) ? 1 : 0;
  });
}

/** Migrates the database of a cell and makes it the cell of this name, as a server does that opens it first. */
export function add(name: string): Promise<number> {
  return onDirectory(async (directory, cells, config) => {
    const cell = cells.find((each) => each.name === name);
    if (cell === undefined) throw new UsageError(`QUARRY_CELLS has no cell ${name}. Add it there first.`);
    const secrets = readSecrets(config);
    const installation = await prepareDirectory(directory, cells, secrets);
    if (cell.target !== undefined)
      await withCell(cell, directory, async (db) => {
        await refuseForeign(directory, db, { name, installation });
        await migrate(db);
        if (secrets !== undefined) await requireCellSecret(db, name, secrets);
        await claimCell(directory, db, { name, installation });
      });
    process.stdout.write(`${name} is a cell of this installation.\n`);
    return 0;
  });
}

/** Keeps new apps out of a cell, or lets them in again. */
export function drain(name: string, options: { undo?: boolean }): Promise<number> {
  return onDirectory(async (directory) => {
    const state = options.undo === true ? 'active' : 'draining';
    if (!(await setCellState(directory, name, state))) {
      process.stderr.write(`There is no cell ${name}.\n`);
      return 1;
    }
    process.stdout.write(
      state === 'active'
        ? `${name} takes new apps again.\n`
        : `${name} takes no new apps. Its apps stay until they are moved.\n`,
    );
    return 0;
  });
}

/** The root secret of the settings or of the data directory; undefined if there is none. */
export function readSecrets({ secret, secretPrevious, dataDir }: Config): Secrets | undefined {
  const root = secret ?? findSecret(dataDir);
  return root === undefined ? undefined : new Secrets(root, secretPrevious);
}

function describe({ name, state, apps, bytes, release, problem }: CellStatus): string {
  const size = bytes === undefined ? '' : `  ${Math.round(bytes / 1024 / 1024)} MiB`;
  const facts = `${name}  ${state}  ${countOf(apps, 'app')}${size}${release === undefined ? '' : `  ${release}`}`;
  return problem === undefined ? facts : `${facts}\n    ${problem}`;
}

/** Runs work on the directory's database. Throws UsageError without QUARRY_CELLS. */
export function onDirectory(
  work: (directory: Database, cells: CellSettings[], config: Config, target: DatabaseTarget) => Promise<number>,
): Promise<number> {
  const config = readConfig();
  const cells = readCells(config);
  if (cells === undefined) throw new UsageError('QUARRY_CELLS is not set: this installation has no cells.');
  return withDatabase(config, createLogger(config.logLevel), async (directory, target) => {
    await requireMigrated(directory);
    return work(directory, cells, config, target);
  });
}
