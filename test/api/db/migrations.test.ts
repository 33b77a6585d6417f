import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Migration, migrate, readMigrations } from '../../../src/db/migrate.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const { db, drop } = await createTestDatabase();
after(drop);
const own = await readMigrations();
const last = own.at(-1)?.version ?? 0;

function next({ sql, servesFrom }: { sql: string; servesFrom?: number }): Migration {
  return { version: last + 1, name: 'next.sql', checksum: 'x', sql, servesFrom };
}

const firstOldChecksum = '373ea1a461a092e84b792ef16e72c67777cfa80203dd1678201c4d223ef653f7';

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

test('a database with an edited migration is refused, and one with a newer migration that does not say what it serves', async () => {
  const known = await readMigrations();
  const edited = known.map((migration) => (migration.version === 2 ? { ...migration, checksum: 'x' } : migration));
  await assert.rejects(migrate(db, edited), /Migration 0002_limits.sql was edited after it was applied/);
  await db`delete from server_facts where name = 'serves_from'`;
  await assert.rejects(migrate(db, known.slice(0, -1)), /The database is newer than this release/);
});

test('a server serves a database that a newer release has expanded, and also starts on it', async () => {
  const server = await startTestServer();
  try {
    const user = await server.provision.user(await server.provision.app());
    assert.deepEqual(await migrate(server.db, [...own, next({ sql: 'alter table users add nickname text' })]), [
      'next.sql',
    ]);
    const beside = await startTestServer({ beside: server });
    try {
      for (const { api } of [server, beside]) {
        assert.equal((await api('GET', '/readyz')).status, 200);
        const stored = await api('PUT', '/api/v1/kv/colour', { token: user.token, body: { value: 'green' } });
        assert.ok(stored.status < 300, stored.text);
      }
    } finally {
      await beside.close();
    }
  } finally {
    await server.close();
  }
});

test('a server leaves service when a newer release takes away what it uses, and does not start again', async () => {
  const server = await startTestServer();
  try {
    const contract = next({ sql: 'alter table users drop name', servesFrom: last + 1 });
    await migrate(server.db, [...own, contract]);
    const { status, body } = await server.api<{ details: { migrations: string } }>('GET', '/readyz');
    assert.equal(status, 503);
    assert.equal(JSON.stringify(body).includes('"migrations":"failed"'), true);
    await assert.rejects(startTestServer({ beside: server }), /The database is newer than this release/);
  } finally {
    await server.close();
  }
});

test('a migration that waits for a table lets its queries pass', async () => {
  const { db: shared, drop: dropShared } = await createTestDatabase();
  try {
    const reader = await shared.reserve();
    await reader`begin`;
    await reader`select count(*) from users`;
    const migrated = migrate(shared, [...own, next({ sql: 'alter table users add nickname text' })]);
    const waiting =
      () => shared`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'alter table users%'
      and datname = current_database()`;
    await until(async () => (await waiting()).length === 1);
    // It stands behind the migration, which stands behind the reader.
    assert.equal((await shared`select count(*)::integer as users from users`)[0]?.users, 0);
    await reader`commit`;
    reader.release();
    assert.deepEqual(await migrated, ['next.sql']);
  } finally {
    await dropShared();
  }
});
