import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import {
  checkConnections,
  checkDurability,
  checkOpenFiles,
  checkProxy,
  checkPublicUrl,
  checkRenderer,
  checkReplicas,
  checkTransactions,
} from '../../src/cli/operate/doctor-surroundings.ts';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/db/database.ts';
import { callQuarry } from '../support/command.ts';
import { startTestServer } from '../support/server.ts';

const directory = mkdtempSync(join(tmpdir(), 'quarry-doctor-'));
const server = await startTestServer();
after(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
});
const secret = '0f1e2d3c4b5a69788796a5b4c3d2e1f0';
const configOf = (settings: Record<string, string>) => readConfig({ QUARRY_SECRET: secret, ...settings });

test('few open files, and too few connections of the database, are found', async () => {
  const limits = (soft: string) =>
    `Limit  Soft Limit  Hard Limit  Units\nMax open files            ${soft}  524288  files\n`;
  assert.equal(checkOpenFiles(limits('1024')).level, 'warn');
  assert.equal(checkOpenFiles(limits('65536')).level, 'ok');
  assert.match(checkOpenFiles().message, /\d+ files may be open|not known/);

  assert.equal((await checkConnections(server.db, configOf({}))).level, 'ok');
  const many = await checkConnections(server.db, configOf({ QUARRY_DB_POOL: '500' }));
  assert.equal(many.level, 'fail');
  assert.match(many.message, /a process needs up to 510/);
  assert.equal((await checkReplicas(server.db)).level, 'ok');
});

test('a database that may lose what it acknowledged, and a forgotten transaction, are found', async () => {
  const [{ database }] = await server.db<[{ database: string }]>`select current_database() as database`;
  await server.db`alter database ${server.db(database)} set synchronous_commit = off`;
  const db = openDatabase(server.services.directTarget, { poolSize: 2, applicationName: 'forgetful' });
  try {
    const { level, message } = await checkDurability(db);
    assert.equal(level, 'warn');
    assert.match(message, /a power cut loses what was acknowledged: .*synchronous_commit.* off$/);
    await server.db`alter database ${server.db(database)} reset synchronous_commit`;

    assert.deepEqual(await checkTransactions(db), []);
    await db.begin(async (tx) => {
      await tx`select pg_current_xact_id()`;
      const [finding] = await checkTransactions(db, 0);
      assert.match(finding?.message ?? '', /^[\w-]+ has kept a transaction open for 0 minutes$/);
      assert.match(finding?.fix ?? '', /pg_terminate_backend\(\d+\)/);
    });
  } finally {
    await db.end({ timeout: 5 });
  }
});

test('a public URL that is not encrypted, unreachable or served by another program is reported', async () => {
  const other = createServer((_request, response) => response.writeHead(404).end());
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  after(() => other.close());
  const levels = async (settings: Record<string, string>) =>
    (await checkPublicUrl(configOf(settings))).map(({ level }) => level);
  assert.deepEqual(await levels({}), ['ok']);
  assert.deepEqual(await levels({ HOST: '0.0.0.0' }), ['warn']);
  assert.deepEqual(await levels({ QUARRY_PUBLIC_URL: server.baseUrl }), ['ok', 'ok']);
  const { port } = other.address() as AddressInfo;
  assert.deepEqual(await levels({ QUARRY_PUBLIC_URL: `http://127.0.0.1:${port}` }), ['ok', 'warn']);
  const [unencrypted, unreachable] = await checkPublicUrl(configOf({ QUARRY_PUBLIC_URL: 'http://quarry.invalid' }));
  assert.match(unencrypted?.message ?? '', /not encrypted/);
  assert.match(unreachable?.message ?? '', /cannot be reached/);
});

test('a proxy that is not trusted, and one that any client can impersonate, are reported', () => {
  const level = (settings: Record<string, string>) => checkProxy(configOf(settings)).level;
  const publicUrl = { QUARRY_PUBLIC_URL: 'https://quarry.example.com' };
  assert.equal(level({}), 'ok');
  assert.equal(level(publicUrl), 'warn');
  assert.equal(level({ ...publicUrl, QUARRY_TRUST_PROXY: '127.0.0.1' }), 'ok');
  assert.equal(level({ ...publicUrl, QUARRY_TRUST_PROXY: '0.0.0.0/0' }), 'warn');
});

test('`quarry doctor` checks the surroundings too, and `quarry fsck` says that a database is not migrated', async () => {
  const env = { QUARRY_DATA_DIR: join(directory, 'new'), QUARRY_LOG_LEVEL: 'error' };
  const unmigrated = await callQuarry(['fsck'], { env });
  assert.equal(unmigrated.code, 1);
  assert.match(unmigrated.stderr, /^The database has no tables of Quarry yet\. `quarry serve` creates them/);
  assert.doesNotMatch(unmigrated.stderr, /\n\s+at /);
  const { stdout } = await callQuarry(['doctor'], { env: { ...env, QUARRY_PARSE_WORKRES: '2' } });
  assert.match(stdout, /^warn +settings +QUARRY_PARSE_WORKRES: .* Did you mean QUARRY_PARSE_WORKERS\?$/m);
  for (const name of ['files', 'renderer', 'public URL', 'proxy', 'database', 'replicas', 'clock', 'disk'])
    assert.match(stdout, new RegExp(`^(ok|warn) +${name} `, 'm'), name);
});

test('a renderer that cannot be used is reported with the reason', async () => {
  assert.match((await checkRenderer(configOf({}))).message, /^none/);
  const { level, message } = await checkRenderer(configOf({ QUARRY_RENDERER: 'http://127.0.0.1:1' }));
  assert.equal(level, 'warn');
  assert.match(message, /cannot be reached.*ECONNREFUSED/);
});
