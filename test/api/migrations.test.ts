import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { migrate, readMigrations } from '../../src/db/migrate.ts';
import { createTestDatabase } from '../support/database.ts';

const { db, drop } = await createTestDatabase();
after(drop);

test('a credential leads to its app, and no other app can have the same one', async () => {
  const [first, second] = [1, 2].map((n) => `00000000-0000-7000-8000-00000000000${n}`) as [string, string];
  const production = '00000000-0000-0000-0000-000000000000';
  await db`insert into developers (id, name) values (${first}, 'A developer')`;
  for (const app of [first, second]) {
    await db`insert into apps (id, developer_id, name, capability_key) values (${app}, ${first}, 'An app', '')`;
    await db`insert into sandboxes (app_id, id, name) values (${app}, ${production}, '')`;
  }
  const insertKey = (app: string) => db`insert into api_keys (app_id, id, sandbox_id, type, digest, hint)
    values (${app}, ${app}, ${production}, 'secret', 'a digest'::bytea, '')`;
  await insertKey(first);
  assert.deepEqual(
    [...(await db`select app_id from credentials where digest = 'a digest'::bytea`)],
    [{ appId: first }],
  );
  await assert.rejects(insertKey(second), /credentials_pkey/);
  await db`delete from apps where id = ${first}`;
  assert.equal((await db`select 1 from credentials`).length, 0);
  await insertKey(second);
});

test('a database with migrations from before the first release is refused and told how to keep its data', async () => {
  const { db: old, drop: dropOld } = await createTestDatabase();
  try {
    await old`update schema_migrations set checksum = ${firstOldChecksum} where version = 1`;
    await assert.rejects(
      migrate(old),
      /run `quarry backup DIRECTORY --include-secret` with the version that created it, then `quarry restore/,
    );
  } finally {
    await dropOld();
  }
});

test('a database with an edited or a newer migration is refused', async () => {
  const known = await readMigrations();
  const edited = known.map((migration) => (migration.version === 2 ? { ...migration, checksum: 'x' } : migration));
  await assert.rejects(migrate(db, edited), /Migration 0002_limits.sql was edited after it was applied/);
  await assert.rejects(migrate(db, known.slice(0, -1)), /The database is newer than this release/);
});

const firstOldChecksum = '373ea1a461a092e84b792ef16e72c67777cfa80203dd1678201c4d223ef653f7';
