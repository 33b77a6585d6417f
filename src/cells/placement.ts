import type { IncomingMessage } from 'node:http';
import type { FirstPlace } from '../apps/bootstrap.ts';
import type { AppPlacement } from '../apps/service.ts';
import * as apps from '../apps/store.ts';
import type { Database } from '../db/database.ts';
import { AppError } from '../lib/errors.ts';
import type { CellSet, OpenCell } from './cell-set.ts';
import * as store from './store.ts';

/** What the servers of a process need to know about its cells. */
export type CellMembership = {
  placement: AppPlacement;
  /** Whether the app is in this cell and is not being moved. */
  ownsApp(appId: string): Promise<boolean>;
  /**
   * The database of an app of another cell; undefined for one of this cell. Throws 503 while that cell cannot be used.
   * A developer's request to the directory's server may concern apps of every cell.
   */
  databaseElsewhere(appId: string): Promise<Database | undefined>;
  /** Whether the app of a failed request has moved to another cell. The next request is sent there. */
  hasMoved(request: IncomingMessage, app: string | undefined): Promise<boolean>;
};

/** Databases whose sizes differ by less count as equally full; then the one with fewer apps is chosen. */
const sizeStep = 256 * 1024 * 1024;

/** Where the first app of an installation is created, with its developer. */
type CellPlacement = AppPlacement & { createFirst: FirstPlace };

/** Puts new apps into the cell with the least use. The directory lists every app with its name. */
export function createPlacement({ directory, set }: { directory: Database; set: CellSet }): CellPlacement {
  async function choose(): Promise<{ name: string; opened: OpenCell }> {
    const rows = await store.listCells(directory);
    const open = set.listOpen().filter(({ settings }) => settings.acceptsNewApps);
    const candidates = await Promise.all(
      open.map(async ({ settings: { name }, opened }) => {
        const row = rows.find((each) => each.name === name);
        if (row?.state !== 'active') return [];
        const bytes = await store.measureDatabase(opened.db).catch(() => undefined);
        return bytes === undefined ? [] : [{ name, opened, steps: Math.floor(bytes / sizeStep), apps: row.apps }];
      }),
    );
    const [first] = candidates.flat().sort((one, other) => one.steps - other.steps || one.apps - other.apps);
    if (first === undefined)
      throw new AppError('unavailable', 'No database takes new apps at the moment. Try again later.', {
        headers: { 'retry-after': '5' },
      });
    return first;
  }

  return {
    async create(app) {
      const { name, opened } = await choose();
      const developer = await store.findDeveloperName(directory, app.developerId);
      if (developer === undefined) throw new AppError('invalid_credentials', 'The developer no longer exists.');
      // The app first: without its line in the directory, nothing can reach it.
      const row = await opened.db.begin(async (tx) => {
        await store.copyDeveloper(tx, app.developerId, developer);
        return apps.insertApp(tx, app);
      });
      await store.insertPlace(directory, name, row);
      return row;
    },

    async createFirst(transaction, developer, insert) {
      const { name, opened } = await choose();
      return opened.db.begin(async (tx) => {
        await store.copyDeveloper(tx, developer.id, developer.name);
        await store.insertPlace(transaction, name, await insert(tx));
      });
    },

    async list(developerId, page) {
      const [rows, total] = await store.listPlacedApps(directory, developerId, page);
      return [rows.map((row) => ({ ...row, runRetention: null, assistants: true })), total];
    },

    listIds: (developerId, max) => store.listPlacedIds(directory, developerId, max),

    rename: (row) => store.updatePlacedApp(directory, row),
  };
}
