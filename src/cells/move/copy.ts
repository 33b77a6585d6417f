import { bypassTriggers, copyRows, inTransaction, literal, quote, type Session } from './session.ts';
import { type AppTable, rowsOf } from './tables.ts';

export type Pair = { source: Session; target: Session };

/** Copies the rows of the app, after deleting what an interrupted try has left. Returns how many. */
export async function copyTable({ source, target }: Pair, table: AppTable, appId: string): Promise<number> {
  const app = literal(appId);
  return inTransaction(target, async () => {
    await bypassTriggers(target);
    await target.query(`delete from ${quote(table.name)} where ${quote(table.appColumn)} = ${app}`);
    return copyRows(
      { session: source, query: rowsOf(table, app) },
      { session: target, table: quote(table.name), columns: table.columns },
    );
  });
}

/** Rows of the installation that rows of the app refer to. */
export async function copyShared({ source, target }: Pair, appId: string): Promise<void> {
  const { rows } = await source.query<{ id: string; name: string; created_at: string }>(
    `select d.id, d.name, d.created_at::text as created_at from developers d
     join apps a on a.developer_id = d.id where a.id = $1`,
    [appId],
  );
  for (const { id, name, created_at } of rows)
    await target.query('insert into developers (id, name, created_at) values ($1, $2, $3) on conflict do nothing', [
      ...[id, name, created_at],
    ]);
  const keys = await source.query(
    'select id, public_key, endorsed_by, endorsement, created_at::text as at from ledger_keys',
  );
  for (const { id, public_key, endorsed_by, endorsement, at } of keys.rows)
    await target.query(
      `insert into ledger_keys (id, public_key, endorsed_by, endorsement, created_at) values ($1, $2, $3, $4, $5)
       on conflict (id) do update set endorsed_by = coalesce(ledger_keys.endorsed_by, excluded.endorsed_by),
         endorsement = coalesce(ledger_keys.endorsement, excluded.endorsement)`,
      [id, public_key, endorsed_by, endorsement, at],
    );
}

/** A table whose copy differs from its source. */
export type Difference = { table: string; source: string; target: string };
type Round = { changes: number; differences: Difference[] };

/**
 * Copies the rows again whose keys the triggers have listed since the last round, and compares them. The keys are
 * deleted only after the copies are committed: an interrupted round is repeated.
 * @param compareAll also compares all rows of these tables, as of the same snapshot
 */
export async function copyChanges(
  pair: Pair,
  tables: readonly AppTable[],
  appId: string,
  compareAll: readonly AppTable[] = [],
): Promise<Round> {
  const { source, target } = pair;
  const result: Round = { changes: 0, differences: [] };
  await inTransaction(
    source,
    async () => {
      const { rows } = await source.query<{ relation: string; count: string }>(
        'select relation, count(*) as count from app_changes where app_id = $1 group by relation',
        [appId],
      );
      const changed = new Map(rows.map(({ relation, count }) => [relation, Number(count)]));
      await inTransaction(target, async () => {
        await bypassTriggers(target);
        for (const table of tables) {
          const count = changed.get(table.name);
          if (count === undefined) continue;
          result.changes += count;
          await copyChangedRows(pair, table, appId);
          result.differences.push(...(await compareChangedRows(pair, table, appId)));
        }
      });
      for (const table of compareAll) result.differences.push(...(await compareTable(pair, table, appId)));
      await source.query('delete from app_changes where app_id = $1', [appId]);
    },
    'isolation level repeatable read',
  );
  return result;
}

const keyTable = (table: AppTable) => quote(`keys_of_${table.name}`);

async function copyChangedRows({ source, target }: Pair, table: AppTable, appId: string): Promise<void> {
  const app = literal(appId);
  const names = table.key.map(({ name }) => quote(name));
  await target.query(
    `create temporary table if not exists ${keyTable(table)} on commit delete rows as
       select ${names.join(', ')} from ${quote(table.name)} limit 0`,
  );
  await copyRows(
    { session: source, query: `select distinct ${keyValues(table)} from app_changes c where ${changesOf(table, app)}` },
    { session: target, table: keyTable(table), columns: table.key.map(({ name }) => name) },
  );
  await target.query(`delete from ${quote(table.name)} t using ${keyTable(table)} k where ${isKey(table)}`);
  await copyRows(
    { session: source, query: rowsOf(table, app, isChanged(table, app)) },
    { session: target, table: quote(table.name), columns: table.columns },
  );
}

async function compareChangedRows({ source, target }: Pair, table: AppTable, appId: string): Promise<Difference[]> {
  const app = literal(appId);
  const isCopied = `exists (select 1 from ${keyTable(table)} k where ${isKey(table)})`;
  return compareSums(
    table.name,
    await sumRows(source, table, app, isChanged(table, app)),
    await sumRows(target, table, app, isCopied),
  );
}

/** Compares the number and the contents of the rows of the app. */
export async function compareTable({ source, target }: Pair, table: AppTable, appId: string): Promise<Difference[]> {
  const app = literal(appId);
  const [there, here] = await Promise.all([sumRows(source, table, app), sumRows(target, table, app)]);
  return compareSums(table.name, there, here);
}

export async function countRows(session: Session, table: AppTable, appId: string): Promise<number> {
  const { rows } = await session.query(
    `select count(*) as count from ${quote(table.name)} where ${quote(table.appColumn)} = $1`,
    [appId],
  );
  return Number(rows[0]?.count);
}

async function sumRows(session: Session, table: AppTable, app: string, where = 'true'): Promise<string> {
  const { rows } = await session.query<{ count: string; sum: string }>(
    `select count(*) as count, coalesce(sum(hashtextextended(r::text, 0)), 0) as sum from (${rowsOf(table, app, where)}) r`,
  );
  return `${rows[0]?.count} rows, checksum ${rows[0]?.sum}`;
}

function compareSums(table: string, source: string, target: string): Difference[] {
  return source === target ? [] : [{ table, source, target }];
}

const changesOf = (table: AppTable, app: string) => `c.app_id = ${app} and c.relation = ${literal(table.name)}`;

function keyValues({ key }: AppTable): string {
  return key.map(({ name, type }) => `(c.key ->> ${literal(name)})::${type} as ${quote(name)}`).join(', ');
}

function isChanged(table: AppTable, app: string): string {
  const columns = table.key.map(({ name }) => `t.${quote(name)}`).join(', ');
  const listed = table.key.map(({ name, type }) => `(c.key ->> ${literal(name)})::${type}`).join(', ');
  return `(${columns}) in (select ${listed} from app_changes c where ${changesOf(table, app)})`;
}

function isKey({ key }: AppTable): string {
  return key.map(({ name }) => `t.${quote(name)} = k.${quote(name)}`).join(' and ');
}
