import type { Database } from '../../../src/db/database.ts';
import { appTables } from '../../../src/db/tables.ts';

type Column = {
  table: string;
  name: string;
  type: string;
  nullable: boolean;
  target: string | null;
  targetColumn: string | null;
};

/** Values of columns that do not accept every value of their type. */
const chosen: Record<string, unknown> = {
  'webhook_deliveries.state': 'delivered',
  'webhook_deliveries.next_attempt_at': null,
  'webhooks.paused_reason': null,
  'webhooks.status': 'active',
  'ledger_segments.kind': 'audit',
  'automations.lookup_key': null,
};

/** Writes `count` rows of the app into every table that belongs to apps, as they are: no trigger and no check runs. */
export async function fillEveryTable(db: Database, appId: string, developerId: string, count = 3): Promise<void> {
  const columns = await db<Column[]>`
    select c.relname as table, a.attname as name, format_type(a.atttypid, null) as type, not a.attnotnull as nullable,
      f.confrelid::regclass::text as target,
      (select t.attname from pg_attribute t where t.attrelid = f.confrelid
        and t.attnum = f.confkey[array_position(f.conkey, a.attnum)]) as target_column
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    left join lateral (select * from pg_constraint k where k.conrelid = c.oid and k.contype = 'f'
      and a.attnum = any (k.conkey) and a.attname not in ('app_id', 'sandbox_id') limit 1) f on true
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    order by c.relname, a.attnum`;
  const checks = await db<{ table: string; definition: string }[]>`
    select conrelid::regclass::text as table, pg_get_constraintdef(oid) as definition
    from pg_constraint where contype = 'c'`;
  const choices = new Map<string, string>();
  for (const { table, definition } of checks) {
    const [, column, first] = /\((\w+) = ANY \(ARRAY\['([^']*)'/.exec(definition) ?? [];
    if (column !== undefined && first !== undefined) choices.set(`${table}.${column}`, first);
  }
  const exclusive = new Set(
    checks.flatMap(({ table, definition }) =>
      (/num_nonnulls\(([^)]*)\)/.exec(definition)?.[1] ?? '')
        .split(', ')
        .slice(1)
        .map((name) => `${table}.${name}`),
    ),
  );
  const valueFor = (column: Column, n: number): unknown => {
    const place = `${column.table}.${column.name}`;
    if (place in chosen) return chosen[place];
    if (column.name === 'app_id' || place === 'apps.id') return appId;
    if (place === 'apps.developer_id') return developerId;
    if (column.name === 'sandbox_id') return idOf(0);
    if (place === 'sandboxes.id') return idOf(n - 1);
    if (exclusive.has(place)) return null;
    if (choices.has(place)) return choices.get(place);
    if (column.target !== null && column.targetColumn !== null)
      return valueFor({ ...column, table: column.target, name: column.targetColumn, target: null }, n);
    return values[column.type]?.(n, column) ?? null;
  };
  await db.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    for (const table of appTables) {
      const own = columns.filter((column) => column.table === table);
      const names = own.map(({ name }) => tx`${tx(name)}`);
      for (let n = 1; n <= (table === 'apps' ? 1 : count); n++) {
        const row = Object.fromEntries(own.map((column) => [column.name, valueFor(column, n)]));
        const list = names.flatMap((name, at) => (at === 0 ? [name] : [tx`, ${name}`]));
        await tx`insert into ${tx(table)} (${list}) overriding system value
          select ${list} from jsonb_populate_record(null::${tx(table)}, ${tx.json(row)}::jsonb)
          on conflict do nothing`;
      }
    }
  });
}

export function idOf(n: number): string {
  return n === 0 ? '00000000-0000-0000-0000-000000000000' : `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`;
}

const values: Record<string, (n: number, column: Column) => unknown> = {
  uuid: (n) => idOf(n),
  text: (n, { name }) => `${name} ${n} ünï\\ ' "`,
  bytea: (n) => `\\x00ff${n.toString(16).padStart(2, '0')}`,
  boolean: (n) => n % 2 === 0,
  json: (n) => ({ n, b: [1.5, null] }),
  jsonb: (n) => ({ n, b: [1.5, null, 'ä'] }),
  'text[]': (n) => [`a ${n}`, 'b,"c"'],
  'uuid[]': (n) => [idOf(n)],
  'timestamp with time zone': (n) => `2026-01-0${n}T00:00:00.123456Z`,
  date: (n) => `2026-01-0${n}`,
  ...Object.fromEntries(
    ['smallint', 'integer', 'bigint', 'real', 'double precision'].map((type) => [type, (n: number) => n]),
  ),
};
