import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { describeSchema } from '../../scripts/describe-schema.ts';
import type { Db } from '../../src/db/database.ts';
import { createTestDatabase } from '../support/database.ts';
import { readProjectFile, readSources, type Source } from '../support/source.ts';

/** Read before the app of a request is known, so it stays whole when the other tables are partitioned by app. */
const unpartitioned = 'credentials';

const { db, drop } = await createTestDatabase();
after(drop);

test('the migrations create the schema in migrations/schema.txt', async () => {
  assert.equal(
    await describeSchema(db),
    readProjectFile('migrations/schema.txt'),
    'Run `npm run migrations`, and read the difference.',
  );
});

test('every primary key of a tenant table begins with app_id, every unique index and foreign key carries it', async () => {
  assert.deepEqual(
    await findUnpartitionable(db),
    [],
    'Carry app_id, so that PostgreSQL can partition the table by app and no query forgets its tenant.',
  );
});

test('the rule finds a key, an index and a reference that lack app_id', async () => {
  await db`create table wrong_keys (app_id uuid not null, id uuid, code text, primary key (id, app_id))`;
  await db`create unique index wrong_code on wrong_keys (code)`;
  await db`create table wrong_references (app_id uuid, id uuid, org_app uuid, org_id uuid, primary key (app_id, id),
    foreign key (org_app, org_id) references orgs (app_id, id), foreign key (app_id, org_id) references orgs (app_id, id))`;
  assert.deepEqual(await findUnpartitionable(db), [
    'wrong_code of wrong_keys',
    'wrong_keys_pkey of wrong_keys',
    'wrong_references_org_app_org_id_fkey of wrong_references',
  ]);
  await db`drop table wrong_references, wrong_keys`;
});

test('the header of a store names the triggers of its tables', async () => {
  const headers = readSources('src')
    .filter(({ name }) => name.endsWith('store.ts'))
    .map(({ text }) => /^\/\*([\s\S]*?)\*\//.exec(text)?.[1] ?? '');
  assert.deepEqual(
    findUnnamedTriggers(await listTriggers(db), headers),
    [],
    'Say in the comment at the top of the store: Triggers of TABLE: NAME does this.',
  );
});

test('the rule finds a trigger that no header names, or that is on another table', () => {
  const triggers = [
    { table: 'files', name: 'files_counted' },
    { table: 'users', name: 'users_changed' },
  ];
  const header = (text: string) => findUnnamedTriggers(triggers, [text]);
  assert.deepEqual(
    header(' * Triggers of files: files_counted counts.\n * Triggers of users: users_changed tells.'),
    [],
  );
  assert.deepEqual(header(' * Triggers of files: files_counted counts, users_changed tells.'), [
    'users_changed of users',
  ]);
  assert.deepEqual(header(''), ['files_counted of files', 'users_changed of users']);
});

type Trigger = { table: string; name: string };

async function listTriggers(db: Db): Promise<Trigger[]> {
  return db<Trigger[]>`
    select c.relname as table, t.tgname as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = current_schema()::regnamespace and not t.tgisinternal order by 1, 2`;
}

function findUnnamedTriggers(triggers: readonly Trigger[], headers: readonly string[]): string[] {
  const sections = headers.flatMap((header) => header.split('Triggers of ').slice(1));
  return triggers
    .filter(({ table, name }) =>
      sections.every((section) => !section.startsWith(`${table}:`) || !new RegExp(`\\b${name}\\b`).test(section)),
    )
    .map(({ table, name }) => `${name} of ${table}`);
}

/** What keeps a table with an app_id from being partitioned by it. A reference to `apps` names the app as its `id`. */
async function findUnpartitionable(db: Db): Promise<string[]> {
  const rows = await db<{ name: string }[]>`
    with tenant as (
      select c.oid, c.relname, a.attnum from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'app_id' and not a.attisdropped
      where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and c.relname <> ${unpartitioned})
    select format('%s of %s', n.relname, t.relname) as name
      from tenant t join pg_index i on i.indrelid = t.oid and i.indisunique
        join pg_class n on n.oid = i.indexrelid
      where not t.attnum = any(i.indkey) or i.indisprimary and i.indkey[0] <> t.attnum
    union all
    select format('%s of %s', k.conname, t.relname)
      from tenant t join pg_constraint k on k.conrelid = t.oid and k.contype = 'f'
        join pg_class r on r.oid = k.confrelid
      where not exists (
        select 1 from unnest(k.conkey, k.confkey) pair (own, other)
          join pg_attribute o on o.attrelid = k.confrelid and o.attnum = pair.other
        where pair.own = t.attnum and o.attname = case r.relname when 'apps' then 'id' else 'app_id' end)
    order by 1`;
  return rows.map(({ name }) => name);
}

test('maps are declared with mapOf, which checks the names of members and the members themselves', () => {
  const records = (sources: Source[]) =>
    sources.filter(({ text }) => /\bType\.Record\(/.test(text)).map(({ name }) => name);
  assert.deepEqual(records(readSources('src')), []);
  assert.deepEqual(records([{ name: 'a', text: 'Type.Record(Type.String({ maxLength: 2 }), Type.String())' }]), ['a']);
});
