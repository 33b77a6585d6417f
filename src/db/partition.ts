import type { Database, Session } from './types.ts';

/** The tables that grow with the data of apps. No foreign key refers to any of them. */
export const largeTables = [
  ...['kv_entries', 'kv_changes', 'automation_run_entries', 'automation_run_output', 'audit_entries'],
  ...['run_anchors', 'ledger_segments'],
  ...['knowledge_chunks', 'knowledge_texts', 'knowledge_postings', 'knowledge_bundles'],
  ...['knowledge_vectors', 'knowledge_codes', 'knowledge_model_codes', 'knowledge_model_terms'],
];

/** SQL for what `create table … like` leaves out. */
type Definition = { options: string; constraints: string[]; indexes: string[]; triggers: string[] };

/**
 * Counts connections of Quarry processes to this database. Idle connections for requests do not count, because a
 * pooler keeps them after their process ends, and a running process always has direct connections as well.
 */
export async function countProcesses(db: Database): Promise<number> {
  const [row] = await db<{ count: number }[]>`
    select count(*)::integer as count from pg_stat_activity
    where datname = current_database()
      and (application_name ~ '^quarry-(direct|session|jobs.*|presence|backup)$'
        or application_name = 'quarry' and state is distinct from 'idle')`;
  return row?.count ?? 0;
}

/**
 * Turns each large table into hash partitions by app, keeping its rows, in one transaction per table. Returns the
 * names of the tables that were not partitioned before. Nothing else can use a table during its conversion.
 */
export async function partitionTables(db: Database, count: number): Promise<string[]> {
  const session = await db.reserve();
  const done: string[] = [];
  try {
    for (const table of largeTables) if (await partition(session, table, count)) done.push(table);
    for (const table of done) await session.runScript(`analyze ${table}`);
  } finally {
    session.release();
  }
  return done;
}

async function partition(session: Session, table: string, count: number): Promise<boolean> {
  const [found] = await session<{ kind: string }[]>`
    select relkind::text as kind from pg_class where oid = to_regclass(${table})`;
  if (found?.kind !== 'r') return false;
  await session.runScript('begin');
  try {
    await session.runScript(`lock table ${table} in access exclusive mode`);
    const { options, constraints, indexes, triggers } = await define(session, table);
    const partitions = Array.from(
      { length: count },
      (_, i) =>
        `create table ${table}_${i} partition of ${table} for values with (modulus ${count}, remainder ${i}) ${options}`,
    );
    // Copy the rows before the triggers exist: triggers would count them again.
    const steps = [
      `alter table ${table} rename to ${table}_whole`,
      `create table ${table} (like ${table}_whole including defaults including constraints including storage
        including compression including comments) partition by hash (app_id)`,
      ...partitions,
      `insert into ${table} select * from ${table}_whole`,
      `drop table ${table}_whole`,
      ...[...constraints, ...indexes, ...triggers],
    ];
    for (const step of steps) await session.runScript(step);
    await session.runScript('commit');
    return true;
  } catch (error) {
    await session.runScript('rollback');
    throw error;
  }
}

async function define(session: Session, table: string): Promise<Definition> {
  const [row] = await session<Definition[]>`
    select coalesce('with (' || array_to_string(c.reloptions, ', ') || ')', '') as options,
      array(select format('alter table %I add constraint %I %s', c.relname, k.conname, pg_get_constraintdef(k.oid))
        from pg_constraint k where k.conrelid = c.oid and k.contype in ('p', 'u', 'f') order by k.contype desc) as constraints,
      array(select pg_get_indexdef(i.indexrelid) from pg_index i where i.indrelid = c.oid
        and not exists (select 1 from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u'))) as indexes,
      array(select pg_get_triggerdef(t.oid) from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal) as triggers
    from pg_class c where c.oid = to_regclass(${table})`;
  if (row === undefined) throw new Error(`There is no table ${table}.`);
  return row;
}
