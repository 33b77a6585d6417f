import { type Directory, MoveError } from '../../../src/cells/move/move.ts';
import { dropSession, openSession } from '../../../src/cells/move/session.ts';
import * as store from '../../../src/cells/move/store.ts';
import type { Database } from '../../../src/db/database.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';

/** Two databases, of which the first one is the directory as well. */
export type MovePair = {
  source: TestDatabase;
  target: TestDatabase;
  directory: Directory;
  /** The cell of the app, as the directory says. */
  cellOf: Map<string, string>;
  close(): Promise<void>;
};

export async function createPair(): Promise<MovePair> {
  const source = await createTestDatabase();
  const target = await createTestDatabase();
  const cellOf = new Map<string, string>();
  return {
    source,
    target,
    cellOf,
    directory: directoryOf({ source, target }, cellOf),
    close: async () => void (await Promise.all([source.drop(), target.drop()])),
  };
}

function directoryOf({ source, target }: Pick<MovePair, 'source' | 'target'>, cellOf: Map<string, string>): Directory {
  return {
    target: source.target,
    targetOf(cell) {
      if (cell !== 'one' && cell !== 'two') throw new MoveError(`There is no cell ${cell}.`);
      return cell === 'one' ? source.target : target.target;
    },
    switchApp: async (_session, { appId, cell }) => void cellOf.set(appId, cell),
    keepApp: async (_session, { appId, cell }) => void cellOf.set(appId, cell),
  };
}

/** Adds a move to the directory, as `quarry cells move` does. */
export async function addMove({ directory }: MovePair, appId: string, source = 'one', target = 'two'): Promise<void> {
  const session = await openSession(directory.target, 'quarry-test');
  try {
    await store.insertMove(session, { appId, id: newUuid(), source, target });
  } finally {
    dropSession(session);
  }
}

/** Every row of the app in every table, as text, by table. Jobs without their number. */
export async function rowsOfApp(db: Database, appId: string): Promise<Record<string, string[]>> {
  const tables = await db<{ name: string }[]>`
    select relname as name from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
      and not relispartition and relpersistence = 'p' and relname not in ('jobs', 'cell_moves', 'cell_apps')
      and exists (select 1 from pg_attribute a where a.attrelid = c.oid and a.attname = 'app_id') order by 1`;
  const content: Record<string, string[]> = {};
  for (const { name } of tables) {
    const rows = await db<
      { row: string }[]
    >`select t::text as row from ${db(name)} t where app_id = ${appId} order by 1`;
    content[name] = rows.map(({ row }) => row);
  }
  const apps = await db<{ row: string }[]>`select t::text as row from apps t where id = ${appId}`;
  content.apps = apps.map(({ row }) => row);
  const jobs = await db<{ row: string }[]>`
    select jsonb_build_array(task, payload, key, priority, run_at, max_attempts)::text as row
    from jobs where app_id = ${appId} order by id`;
  content.jobs = jobs.map(({ row }) => row);
  return content;
}
