import { type Db, production, type Statement } from '../db/database.ts';
import { formatId, type IdKind, idPrefixes } from '../lib/ids.ts';
import type { ExportStep } from './export-steps.ts';
import { type Exported, exported, omittedEverywhere } from './exported.ts';

/*
 * Reads the rows of an archive by their primary key, in pages that are bounded by their bytes, so that no transaction
 * stays open while a client reads slowly.
 */

type Column = { name: string; type: string };
type Row = Record<string, unknown>;
type Table = { columns: Column[]; key: Column[] };

const pageRowsMax = 500;
const pageBytesMax = 1024 * 1024;

/** The rows of a step as the archive has them, in pages. */
export async function* readRows(db: Db, appId: string, { table: name, where }: ExportStep): AsyncGenerator<Row[]> {
  const form = exported[name];
  if (form === undefined) throw new Error(`${name} is not in the archive.`);
  const table = await describeTable(db, name);
  const omit = new Set([...omittedEverywhere, ...(form.omit ?? [])]);
  const isShown = ({ name: column, type }: Column) =>
    !omit.has(column) && (type !== 'bytea' || form.hex?.includes(column) === true);
  const shown = table.columns.filter(isShown);
  const read = table.columns.filter((column) => isShown(column) || table.key.includes(column));
  let last: Row | undefined;
  let limit = 16;
  do {
    const lines: { line: string }[] = await readPage(db, appId, { name, where, table, read, last, limit });
    const rows = lines.map(({ line }) => JSON.parse(line) as Row);
    last = rows.at(-1);
    if (rows.length > 0) yield rows.map((row) => present(form, shown, row));
    limit = Math.min(pageRowsMax, rows.length * 2);
  } while (last !== undefined);
}

type Page = {
  name: string;
  where: ExportStep['where'];
  table: Table;
  read: Column[];
  last: Row | undefined;
  limit: number;
};

/** The next rows as JSON: at least one if there is one, and then as many as fit into the bytes of a page. */
function readPage(db: Db, appId: string, { name, where, table, read, last, limit }: Page) {
  const list = (parts: Statement[]) => parts.reduce((all, part) => db`${all}, ${part}`);
  const key = list(table.key.map((column) => db`${db(`t.${column.name}`)}`));
  const after =
    last === undefined ? db`true` : db`(${key}) > (${list(table.key.map((column) => keyValue(db, column, last)))})`;
  return db<{ line: string }[]>`
    select line from (
      select line, place, sum(octet_length(line)) over (order by place) - octet_length(line) as before from (
        select row_to_json(found)::text as line, row_number() over () as place from (
          select ${list(read.map((column) => db`${db(`t.${column.name}`)}`))} from ${db(name)} t
          where t.app_id = ${appId} and ${where(db)} and ${after}
          order by ${key} limit ${limit}) found) numbered) summed
    where before < ${pageBytesMax} order by place`;
}

function keyValue(db: Db, { name, type }: Column, row: Row): Statement {
  const value = String(row[name]);
  switch (type) {
    case 'uuid':
      return db`${value}::uuid`;
    case 'text':
      return db`${value}::text`;
    case 'date':
      return db`${value}::date`;
    case 'bytea':
      return db`${value}::text::bytea`;
    default:
      return db`${value}::bigint`;
  }
}

/** The columns of a table, and those of its primary key after the app. */
async function describeTable(db: Db, name: string): Promise<Table> {
  const found = await db<(Column & { place: number | null })[]>`
    select a.attname::text as name, a.atttypid::regtype::text as type,
      array_position(i.indkey::smallint[], a.attnum) as place
    from pg_attribute a join pg_index i on i.indrelid = a.attrelid and i.indisprimary
    where a.attrelid = ${name}::regclass and a.attnum > 0 and not a.attisdropped
    order by a.attnum`;
  const key = found
    .filter((column) => column.place !== null && column.name !== 'app_id')
    .sort((a, b) => (a.place ?? 0) - (b.place ?? 0));
  return { columns: found, key };
}

/** A row as a line of the archive: ids and times as the API shows them, without what is empty. */
function present(form: Exported, columns: Column[], row: Row): Row {
  const line: Row = {};
  for (const { name, type } of columns) {
    const value = row[name];
    if (value === null || value === undefined || (name === 'sandbox_id' && value === production)) continue;
    const kind = name === 'id' ? form.id : kindOf(name, row);
    const shown = presentValue(type, kind, value);
    line[type === 'uuid' && kind !== undefined ? name.replace(/_id$/, '') : name] = shown;
  }
  return line;
}

function presentValue(type: string, kind: IdKind | undefined, value: unknown): unknown {
  if (type === 'timestamp with time zone') return new Date(String(value)).toISOString();
  if (type === 'bytea') return String(value).slice(2);
  if (kind === undefined) return value;
  if (type === 'uuid') return formatId(kind, String(value));
  if (type === 'uuid[]') return (value as string[]).map((id) => formatId(kind, id));
  return value;
}

/** The columns whose ids have another name than what they are ids of. */
const kinds: Record<string, IdKind> = {
  actor_id: 'user',
  budget_id: 'modelBudget',
  collection_id: 'source',
  output_id: 'extractionOutput',
  previous_id: 'response',
  retried_from: 'automationRun',
  run_id: 'automationRun',
  parent_run_id: 'automationRun',
  users: 'user',
  teams: 'team',
  document_ids: 'document',
};
/** The columns that say what the id beside them is an id of. */
const namedBeside: Record<string, readonly string[]> = {
  subject_id: ['subject_kind', 'subject'],
  principal_id: ['principal_type'],
  credential_id: ['kind'],
};

function kindOf(name: string, row: Row): IdKind | undefined {
  const beside = namedBeside[name]?.map((column) => row[column]).find((value) => typeof value === 'string');
  if (beside !== undefined) return asKind(beside === 'run' ? 'automationRun' : String(beside));
  // Such as invoked_by_user_id and profile_picture_file_id.
  return kinds[name] ?? (name.endsWith('_id') ? asKind(/([a-z]+)_id$/.exec(name)?.[1] ?? '') : undefined);
}

function asKind(name: string): IdKind | undefined {
  return Object.hasOwn(idPrefixes, name) ? (name as IdKind) : undefined;
}
