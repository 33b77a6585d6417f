import { appTables, tables } from '../../db/tables.ts';
import { MoveError } from './errors.ts';
import { bypassTriggers, inTransaction, quote, type Session } from './session.ts';

/** A table whose rows of an app are copied. */
export type AppTable = {
  name: string;
  /** Everything that is stored, without generated columns. */
  columns: string[];
  /** Identifies a row within the app. A table without a primary key is identified by all of its columns. */
  key: { name: string; type: string }[];
  /** The column with the id of the app. */
  appColumn: string;
};

/** The tables of the database that a move copies. Throws MoveError for a table that db/tables.ts does not name. */
export async function listAppTables(session: Session): Promise<AppTable[]> {
  const { rows } = await session.query<AppTable & { columns: string[] }>(
    `select c.relname as name,
       array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0
         and not a.attisdropped and a.attgenerated = '' order by a.attname) as columns,
       (select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod))
           order by a.attnum)
         from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
           and (a.attnum = any (i.indkey) or i.indkey is null)) as key
     from pg_class c left join pg_index i on i.indrelid = c.oid and i.indisprimary
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     order by c.relname`,
  );
  const unknown = rows.filter(({ name }) => !(name in tables)).map(({ name }) => name);
  if (unknown.length > 0)
    throw new MoveError(`The database has tables that are not Quarry's: ${unknown.join(', ')}. Move them away first.`);
  return rows
    .filter(({ name }) => appTables.includes(name))
    .map(({ name, columns, key }) => {
      const appColumn = name === 'apps' ? 'id' : 'app_id';
      return { name, columns, appColumn, key };
    });
}

/** The rows of the app as a query, with the columns in the order of `columns`. */
export function rowsOf({ name, columns, appColumn }: AppTable, app: string, where = 'true'): string {
  const list = columns.map((column) => `t.${quote(column)}`).join(', ');
  return `select ${list} from ${quote(name)} t where t.${quote(appColumn)} = ${app} and ${where}`;
}

const deletedMax = 2_000;

/** Deletes the rows of the app as they are: no trigger counts them, emits an event or lists a blob for deletion. */
export async function deleteRows(
  session: Session,
  { name, appColumn }: Pick<AppTable, 'name' | 'appColumn'>,
  appId: string,
): Promise<void> {
  const ofApp = `${quote(appColumn)} = $1`;
  for (let deleted = deletedMax; deleted === deletedMax; )
    deleted = await inTransaction(session, async () => {
      await bypassTriggers(session);
      const { rowCount } = await session.query(
        `delete from ${quote(name)} where ${ofApp} and ctid = any (array(
           select ctid from ${quote(name)} where ${ofApp} limit ${deletedMax}))`,
        [appId],
      );
      return rowCount ?? 0;
    });
}
