import type { Db } from './database.ts';

/**
 * Facts about the database as a whole, other than its schema: the blob store of its files, the backup that is being
 * restored into it, and the oldest schema whose code can use it. The table is created before any migration, because a
 * restore needs it earlier.
 */
type FactName = 'blob_store' | 'restoring' | 'serves_from';

export async function createFacts(db: Db): Promise<void> {
  await db`create table if not exists server_facts (
    name text primary key, value text not null, noted_at timestamptz not null default now())`;
}

export async function findFact(db: Db, name: FactName): Promise<string | undefined> {
  const [row] = await db<{ value: string }[]>`select value from server_facts where name = ${name}`;
  return row?.value;
}

export async function putFact(db: Db, name: FactName, value: string): Promise<void> {
  await db`insert into server_facts (name, value) values (${name}, ${value})
    on conflict (name) do update set value = excluded.value, noted_at = excluded.noted_at`;
}
