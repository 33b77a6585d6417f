import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Database } from '../../src/db/database.ts';
import { type Migration, migrate, readMigrations } from '../../src/db/migrate.ts';
import { callQuarry } from '../support/command.ts';
import { createEmptyDatabase, createTestDatabase } from '../support/database.ts';
import { type ApiOptions, sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

/* An upgrade of an installation, cell by cell: this release beside schemas of the one before and of the next one. */

const migrations = await readMigrations();
const last = migrations.at(-1) ?? assert.fail();
const next: Migration = {
  ...{ version: last.version + 1, name: 'next_release.sql', checksum: 'next', servesFrom: last.version },
  sql: `alter table users add column next_release text not null default ''`,
};
const directory = mkdtempSync(join(tmpdir(), 'quarry-cells-skew-'));
const [home, behind, ahead] = [await createTestDatabase(), await createEmptyDatabase(), await createTestDatabase()];
const databases = [home, behind, ahead];
const proxies = await Promise.all(databases.map(({ target }) => openTcpProxy(target)));
after(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await Promise.all(databases.map((database) => database.drop()));
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
});

async function readVersion(db: Database): Promise<number | undefined> {
  const [row] = await db<{ version: number }[]>`select max(version) as version from schema_migrations`;
  return row?.version;
}

test('beside a cell of the next release, a cell of the one before is migrated, and the apps of both work', async () => {
  await migrate(behind.db, migrations.slice(0, -1));
  for (const { db } of [home, ahead]) await migrate(db, [...migrations, next]);
  const cells = [
    { name: 'behind', database_url: proxies[1]?.url },
    { name: 'ahead', database_url: proxies[2]?.url },
  ];
  const env = {
    ...{ DATABASE_URL: proxies[0]?.url ?? '', QUARRY_DATA_DIR: join(directory, 'data'), QUARRY_LOG_LEVEL: 'error' },
    ...{ QUARRY_SECRET: '71d0c5a98e2f4b63a7c8159de0b4f326', QUARRY_CELLS: JSON.stringify({ cells }) },
  };
  const server = await startServe(env);
  after(() => server.stop());
  const send = <T = { id: string }>(method: string, path: string, options: ApiOptions) =>
    sendRequest<T>(server.baseUrl, method, path, options);
  await until(async () => {
    const { text } = await send('GET', '/metrics', {});
    return text.match(/quarry_cell_up\{cell="(?:behind|ahead)"\} 1/g)?.length === 2;
  });
  assert.deepEqual(await Promise.all(databases.map(({ db }) => readVersion(db))), [
    ...[next.version, last.version, next.version],
  ]);

  const { secret_key: firstKey = '', developer_token: token = '' } = JSON.parse(
    readFileSync(join(directory, 'data', 'credentials.json'), 'utf8'),
  ) as Record<string, string>;
  const apps = '/protected/api/v1/developer/apps';
  const second = await send('POST', apps, { token, body: { name: 'Second' } });
  const made = await send<{ full_key: string }>('POST', `${apps}/${second.body.id}/keys`, {
    ...{ token, body: { type: 'secret' } },
  });
  const places = await home.db<{ cell: string }[]>`select cell from cell_apps order by cell`;
  assert.deepEqual(
    places.map(({ cell }) => cell),
    ['ahead', 'behind'],
  );
  for (const key of [firstKey, made.body.full_key]) {
    const user = await send('POST', '/api/v1/users', { key, body: { email: 'ada@example.com' } });
    assert.equal(user.status, 201, user.text);
    const put = await send('PUT', '/api/v1/kv/entry', { key, body: { user: user.body.id, value: 'kept' } });
    assert.ok(put.status < 300, put.text);
    const read = await send<{ value: string }>('GET', `/api/v1/kv/entry?user=${user.body.id}`, { key });
    assert.equal(read.body.value, 'kept');
  }

  // A command of this release moves nothing into tables that it does not know.
  const move = await callQuarry(['cells', 'move', second.body.id, '--to', 'ahead'], { env });
  assert.equal(move.code, 1);
  assert.match(move.stderr, /The database is newer than this release/);
  assert.equal((await send('GET', '/api/v1/users', { key: made.body.full_key })).status, 200);
});
