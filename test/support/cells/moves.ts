import { Directory } from '../../../src/cells/move/directory.ts';
import type { Database } from '../../../src/db/database.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';

/** Two cells, of which the first one is in the directory's database. */
type MovePair = {
  source: CellDatabase;
  target: CellDatabase;
  directory: Directory;
  /** The cell of the app, as the directory says. */
  cellOf(appId: string): Promise<string | undefined>;
  /** Lists an app of the first cell in the directory, and adds its move. */
  addMove(appId: string, cell?: string): Promise<void>;
  close(): Promise<void>;
};

type CellDatabase = Pick<TestDatabase, 'target' | 'db'>;

export async function createPair(): Promise<MovePair> {
  const source = await createTestDatabase();
  const target = await createTestDatabase();
  return {
    ...(await pairOf(source, target)),
    close: async () => void (await Promise.all([source.drop(), target.drop()])),
  };
}

/** Makes these databases cells, which the caller removes. */
export async function pairOf(source: CellDatabase, target: CellDatabase): Promise<Omit<MovePair, 'close'>> {
  const { db } = source;
  await db`insert into cells (name, database) values ('one', gen_random_uuid()), ('two', gen_random_uuid()),
    ('three', null), ('four', gen_random_uuid()), ('five', gen_random_uuid())`;
  await db`update cells set state = 'draining' where name = 'four'`;
  const directory = new Directory(source.target, [
    ...['one', 'two', 'three', 'four'].map((name) => ({
      ...{ name, target: name === 'one' ? source.target : target.target, acceptsNewApps: true },
    })),
    { name: 'five', target: target.target, acceptsNewApps: false },
  ]);
  return {
    source,
    target,
    directory,
    async cellOf(appId) {
      const [row] = await db<{ cell: string }[]>`select cell from cell_apps where app_id = ${appId} and state = 'here'`;
      return row?.cell;
    },
    async addMove(appId, cell = 'two') {
      await db`insert into cell_apps (app_id, cell, developer_id, name, created_at, updated_at)
        select id, 'one', developer_id, name, created_at, updated_at from apps where id = ${appId}
        on conflict do nothing`;
      await directory.addMove(appId, cell);
    },
  };
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
