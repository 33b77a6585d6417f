import { type Reconciled, reconcileCell, reconcileDirectory } from '../../cells/reconcile.ts';
import { readCells } from '../../cells/settings.ts';
import type { Config } from '../../config/config.ts';
import type { DatabaseTarget } from '../../db/address.ts';
import { UsageError } from '../errors.ts';
import { onDirectory } from './cells.ts';

/** The name of the directory's database beside those of cells. No cell can have it. */
export const directoryName = 'directory';

/** Makes a database that was restored, a cell or the directory, agree with the others. */
export function reconcile(name: string): Promise<number> {
  return onDirectory(async (_directory, _cells, config, target) => {
    await reconcileRestored(config, target, name);
    return 0;
  });
}

/** The same, and shows what changed. `directory` is the database of DATABASE_URL. */
export async function reconcileRestored(config: Config, directory: DatabaseTarget, name: string): Promise<void> {
  const settings = readCells(config) ?? [];
  const cells = settings.flatMap((cell) => {
    const target = cell.directTarget ?? cell.target;
    return target === undefined ? [] : [{ name: cell.name, target }];
  });
  const own = settings.find(({ target }) => target === undefined)?.name;
  if (name !== directoryName && !cells.some((cell) => cell.name === name))
    throw new UsageError(
      name === own
        ? `${name} is in the directory's database: name "${directoryName}".`
        : `QUARRY_CELLS has no cell ${name}.`,
    );
  const databases = { directory, cells };
  const found =
    name === directoryName
      ? await reconcileDirectory(databases, own)
      : new Map([[name, await reconcileCell(databases, name)]]);
  for (const [cell, changed] of found) for (const line of describe(cell, changed)) process.stdout.write(`${line}\n`);
}

function describe(cell: string, { deleted, listed, missing }: Reconciled): string[] {
  const lines = [
    ...deleted.map((app) => `${app}: deleted, because it is in another cell`),
    ...listed.map((app) => `${app}: listed in the directory`),
    ...missing.map((app) => `${app}: not in this database; no longer listed`),
  ];
  return lines.length === 0
    ? [`${cell} agrees with the directory.`]
    : [`${cell}:`, ...lines.map((line) => `  ${line}`)];
}
