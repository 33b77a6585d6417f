import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parseId } from '../../src/lib/ids.ts';
import { callQuarry } from '../support/command.ts';
import { createTestDatabase } from '../support/database.ts';
import { sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

/* The first start of an installation with cells, as a program, and starts that are refused. */

const directory = mkdtempSync(join(tmpdir(), 'quarry-cells-start-'));
const databases = await Promise.all([0, 1, 2].map(() => createTestDatabase()));
/** The directory's database. */
const { db } = databases[0] ?? assert.fail();
const proxies = await Promise.all(databases.map(({ target }) => openTcpProxy(target)));
const urls = proxies.map(({ url }) => url);
after(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await Promise.all(databases.map((database) => database.drop()));
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
});

const secret = '71d0c5a98e2f4b63a7c8159de0b4f326';
const alone = [
  { name: 'eu1', database_url: urls[1] },
  { name: 'eu2', database_url: urls[2] },
];

function envOf(cells: object[], others: Record<string, string> = {}) {
  return {
    ...{ DATABASE_URL: urls[0] ?? '', QUARRY_DATA_DIR: join(directory, 'data'), QUARRY_LOG_LEVEL: 'error' },
    ...{ QUARRY_SECRET: secret, QUARRY_CELLS: JSON.stringify({ cells }), QUARRY_DB_POOL: '4', ...others },
  };
}

const readCredentials = () =>
  JSON.parse(readFileSync(join(directory, 'data', 'credentials.json'), 'utf8')) as Record<string, string>;

test('the first start with a directory that is not a cell creates the first app in a cell, with working keys', async () => {
  const server = await startServe(envOf(alone));
  try {
    const { app = '', secret_key: key = '', developer_token: token = '' } = readCredentials();
    const [place] = await db<{ cell: string }[]>`
      select cell from cell_apps where app_id = ${parseId('app', app) ?? ''}`;
    assert.match(place?.cell ?? '', /^eu[12]$/);
    const own = await db`select 1 from apps`;
    assert.equal(own.length, 0, 'the directory has no app of its own');
    const created = await sendRequest(server.baseUrl, 'POST', '/api/v1/users', {
      ...{ key, body: { email: 'ada@example.com' } },
    });
    assert.equal(created.status, 201, created.text);
    const listed = await sendRequest<{ data: { id: string }[] }>(
      ...([server.baseUrl, 'GET', '/protected/api/v1/developer/apps', { token }] as const),
    );
    assert.deepEqual(
      listed.body.data.map(({ id }) => id),
      [app],
    );
  } finally {
    await server.stop();
  }
  // New credentials of the first app work, too.
  const { code, stdout, stderr } = await callQuarry(['credentials', '--json'], { env: envOf(alone) });
  assert.equal(code, 0, stderr);
  const made = JSON.parse(stdout) as Record<string, string>;
  assert.equal(made.app, readCredentials().app);
  const again = await startServe(envOf(alone));
  try {
    // The server is ready before its cells are open.
    await until(async () => {
      const users = await sendRequest(again.baseUrl, 'GET', '/api/v1/users', { key: made.secret_key ?? '' });
      return users.status === 200;
    });
  } finally {
    await again.stop();
  }
});

test('a start or a command with another secret is refused with the reason', async () => {
  const env = envOf(alone, { QUARRY_SECRET: '99f2b4c6d8e0a1b3c5d7e9f0a2b4c6d8' });
  for (const args of [
    ['serve'],
    ['cells', 'add', 'eu2'],
    ['cells', 'move', readCredentials().app ?? '', '--to', 'eu2'],
  ]) {
    const { code, stderr } = await callQuarry(args, { env: { ...env, PORT: '0' } });
    assert.equal(code, 1, args.join(' '));
    assert.match(stderr, /QUARRY_SECRET is not the secret of this installation/, args.join(' '));
  }
  // A new secret with the previous one is a rotation, after which the new one alone is right.
  const next = { QUARRY_SECRET: '99f2b4c6d8e0a1b3c5d7e9f0a2b4c6d8' };
  const rotating = await startServe(envOf(alone, { ...next, QUARRY_SECRET_PREVIOUS: secret }));
  try {
    await until(async () => {
      const { text } = await sendRequest(rotating.baseUrl, 'GET', '/metrics');
      return text.match(/quarry_cell_up\{cell="eu[12]"\} 1/g)?.length === 2;
    });
  } finally {
    await rotating.stop();
  }
  const server = await startServe(envOf(alone, next));
  try {
    const path = '/api/v1/users';
    await until(async () => {
      const { status } = await sendRequest(server.baseUrl, 'GET', path, { key: readCredentials().secret_key ?? '' });
      return status === 200;
    });
  } finally {
    await server.stop();
  }
  const old = await callQuarry(['cells', 'add', 'eu2'], { env: envOf(alone) });
  assert.match(old.stderr, /QUARRY_SECRET is not the secret/);
});

test('the app of the first start of a directory that is a cell is listed in that cell', async () => {
  for (const each of databases) await each.db`truncate apps, developers, cells, cell_apps, cell_identity cascade`;
  const server = await startServe(envOf([{ name: 'eu1' }, { name: 'eu2', database_url: urls[1] }]));
  await server.stop();
  const [place] = await db<{ cell: string }[]>`
    select cell from cell_apps where app_id = ${parseId('app', readCredentials().app ?? '') ?? ''}`;
  assert.equal(place?.cell, 'eu1');
});
