import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { CellStatus } from '../../src/cells/status.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { Secrets } from '../../src/tenancy/secrets.ts';
import { callQuarry } from '../support/command.ts';
import { createEmptyDatabase, createTestDatabase } from '../support/database.ts';
import { Provisioner } from '../support/provisioner.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';

const secret = 'f3a91c7be2d84056b8e17d0c95a64f21';
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-cells-test-'));
const directory = await createTestDatabase();
const other = await createEmptyDatabase();
const foreign = await createTestDatabase();
const proxies = await Promise.all([directory, other, foreign].map(({ target }) => openTcpProxy(target)));
const [home = '', away = '', theirs = ''] = proxies.map(({ url }) => url);
after(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await Promise.all([directory, other, foreign].map((each) => each.drop()));
  rmSync(dataDir, { recursive: true, force: true });
});
const app = await new Provisioner(directory.db, new Secrets(secret), systemClock).app();

type Cell = { name: string; database_url?: string; [member: string]: unknown };

function quarry(args: string[], cells: Cell[] | string) {
  const env = {
    QUARRY_DATA_DIR: dataDir,
    QUARRY_LOG_LEVEL: 'silent',
    QUARRY_SECRET: secret,
    DATABASE_URL: home,
    ...(cells === '' ? {} : { QUARRY_CELLS: typeof cells === 'string' ? cells : JSON.stringify({ cells }) }),
  };
  return callQuarry(args, { env });
}

const both: Cell[] = [{ name: 'eu1' }, { name: 'eu2', database_url: away }];

async function list(cells: Cell[]): Promise<CellStatus[]> {
  const { stdout } = await quarry(['cells', 'list', '--json'], cells);
  return JSON.parse(stdout) as CellStatus[];
}

test('a cell is prepared, listed, drained and opened again; apps of the directory are listed', async () => {
  const before = await list(both);
  assert.deepEqual(
    before.map(({ name, state, apps }) => [name, state, apps]),
    [
      ['eu1', 'new', 0],
      ['eu2', 'new', 0],
    ],
  );
  const added = await quarry(['cells', 'add', 'eu2'], both);
  assert.equal(added.code, 0, added.stderr);
  const listed = await list(both);
  assert.deepEqual(
    listed.map(({ name, state, apps, problem }) => [name, state, apps, problem]),
    [
      ['eu1', 'active', 1, undefined],
      ['eu2', 'active', 0, undefined],
    ],
  );
  const [place] = await directory.db`select cell, name from cell_apps where app_id = ${app.app.uuid}`;
  assert.deepEqual(place, { cell: 'eu1', name: 'Test app' });
  // A repeated preparation changes nothing.
  assert.equal((await quarry(['cells', 'add', 'eu2'], both)).code, 0);

  assert.equal((await quarry(['cells', 'drain', 'eu2'], both)).code, 0);
  assert.equal((await list(both))[1]?.state, 'draining');
  assert.equal((await quarry(['cells', 'drain', 'eu2', '--undo'], both)).code, 0);
  assert.equal((await list(both))[1]?.state, 'active');
});

test('what cannot be a cell is refused with the reason', async () => {
  const reason = async (cells: Cell[], name: string) => (await quarry(['cells', 'add', name], cells)).stderr;
  const here = { name: 'eu1' };
  assert.match(
    await reason([here, { name: 'eu3', database_url: `${away}?application_name=x` }], 'eu3'),
    /same database/,
  );
  assert.match(
    await reason([here, { name: 'eu3', database_url: `${home}?application_name=x` }], 'eu3'),
    /eu1 .*same database/,
  );
  const tenants = new Provisioner(foreign.db, new Secrets(secret), systemClock);
  await tenants.app();
  assert.match(await reason([here, { name: 'us1', database_url: theirs }], 'us1'), /already has apps/);
  await foreign.db`delete from sandboxes`;
  await foreign.db`truncate apps cascade`;
  await foreign.db`insert into cell_identity (installation, database, cell)
    values (gen_random_uuid(), gen_random_uuid(), 'us1')`;
  assert.match(await reason([here, { name: 'us1', database_url: theirs }], 'us1'), /another installation/);
  assert.match(await reason([{ name: 'de1' }], 'de1'), /database of the cell eu1, not of de1/);
  assert.match(await reason([{ name: 'eu2', database_url: away }], 'eu2'), /has apps as the cell eu1/);
  assert.match(await reason([here, { name: 'eu2', database_url: theirs }], 'eu2'), /another installation/);
  assert.match(await reason([here], 'eu9'), /QUARRY_CELLS has no cell eu9/);
  assert.match((await quarry(['cells', 'list'], '')).stderr, /QUARRY_CELLS is not set/);
});

test('migrate, fsck and doctor visit every cell, one after the other', async () => {
  await directory.db`update cells set database = null where name = 'eu2'`;
  await other.db`drop schema public cascade`;
  await other.db`create schema public`;
  const migrated = await quarry(['migrate'], both);
  assert.equal(migrated.code, 0, migrated.stderr);
  assert.match(migrated.stdout, /up to date[\s\S]*Cell eu2:\nApplied:\n {2}0001/);
  assert.equal((await quarry(['cells', 'add', 'eu2'], both)).code, 0);
  const tenants = new Provisioner(other.db, new Secrets(secret), systemClock);
  const { app: moved } = await tenants.app();
  await other.db`insert into app_usage (app_id, sandbox_id, measure, period, part, used)
    select app_id, id, 'documents', '1970-01-01', 0, 7 from sandboxes where app_id = ${moved.uuid}`;
  const checked = await quarry(['fsck'], both);
  assert.equal(checked.code, 1, checked.stdout);
  assert.match(checked.stdout, /Cell eu2:[\s\S]*documents: counter is 7, actual value is 0/);
  const repaired = await quarry(['fsck', '--repair'], both);
  assert.equal(repaired.code, 0, repaired.stdout + repaired.stderr);

  const healthy = await quarry(['doctor'], both);
  assert.match(healthy.stdout, /ok +cells +eu1: PostgreSQL/);
  assert.match(healthy.stdout, /ok +cells +eu2: all \d+ migrations are applied/);
  assert.match(healthy.stdout, /ok +cells +eu2: decrypts the stored values/);
  const down = [{ name: 'eu1' }, { name: 'eu2', database_url: 'postgres://u@127.0.0.1:1/none' }];
  for (const command of ['migrate', 'fsck']) {
    const { code, stdout } = await quarry([command], down);
    assert.equal(code, 1, stdout);
    assert.match(stdout, /Cell eu2:\n.*(?:ECONNREFUSED|cannot|refused)/i);
  }
  assert.match((await quarry(['doctor'], down)).stdout, /fail +cells +eu2: unreachable/);
});

test('a cell of another release is refused by every command, with the reason', async () => {
  await other.db`insert into schema_migrations (version, name, checksum) values (9999, '9999_future.sql', 'x')`;
  await other.db`update server_facts set value = '9999' where name = 'serves_from'`.catch(() => {});
  try {
    const listed = await quarry(['cells', 'list'], both);
    assert.equal(listed.code, 1, listed.stdout);
    assert.match(listed.stdout, /eu2 [\s\S]*release/);
    for (const args of [
      ['cells', 'add', 'eu2'],
      ['cells', 'move', app.app.id, '--to', 'eu2'],
    ]) {
      const { code, stdout, stderr } = await quarry(args, both);
      assert.equal(code, 1, args.join(' '));
      assert.match(stdout + stderr, /release/, args.join(' '));
    }
  } finally {
    await other.db`delete from schema_migrations where version = 9999`;
  }
});

test('a balance is proposed and changes nothing', async () => {
  const uneven = await quarry(['cells', 'balance', '--dry-run', '--json'], both);
  assert.equal(uneven.code, 0, uneven.stderr);
  const { cells, moves } = JSON.parse(uneven.stdout) as { cells: { name: string; bytes: number }[]; moves: unknown[] };
  assert.deepEqual(
    cells.map(({ name, bytes }) => [name, bytes > 0]),
    [
      ['eu1', true],
      ['eu2', true],
    ],
  );
  assert.deepEqual(moves, []);
  assert.equal((await quarry(['cells', 'drain', 'eu1'], both)).code, 0);
  const drained = await quarry(['cells', 'balance', '--dry-run'], both);
  assert.match(drained.stdout, new RegExp(`quarry cells move ${app.app.id} --to eu2`));
  const rows = await directory.db`select 1 from cell_moves`;
  assert.equal(rows.length, 0);
  assert.equal((await quarry(['cells', 'drain', 'eu1', '--undo'], both)).code, 0);
  assert.match((await quarry(['cells', 'balance'], both)).stderr, /add --dry-run/);
});

test('wrong settings name each problem, and never a password', async () => {
  const cells = [
    { name: 'EU' },
    { name: 'a', database_url: 'postgres://u:hidden@db/a', color: 1 },
    { name: 'a', database_url: 'mysql://u:hidden@db/b' },
    { name: 'b', database_url: 'postgres://u:hidden@db/a', accepts_new_apps: 'no' },
  ];
  const { code, stderr } = await quarry(['cells', 'list'], cells);
  assert.equal(code, 1);
  for (const problem of [
    /cells\[0\]\.name/,
    /cells\[1\]\.color is not known/,
    /cells\[2\]\.database_url/,
    /two cells are called a/,
    /a and b have the same database/,
    /cells\[3\]\.accepts_new_apps/,
  ])
    assert.match(stderr, problem);
  const broken = await quarry(['cells', 'list'], '{"cells": [{"database_url": "postgres://u:hidden@db/a"');
  assert.match(broken.stderr, /is not JSON/);
  assert.doesNotMatch(stderr + broken.stderr, /hidden/);
  assert.match((await quarry(['cells', 'list'], 'file:/nowhere/cells.json')).stderr, /cannot be read/);
});

test('a cell that is down or unlisted is shown with the reason, and the command fails', async () => {
  const down = [{ name: 'eu1' }, { name: 'eu2', database_url: 'postgres://u@127.0.0.1:1/none' }];
  const { code, stdout } = await quarry(['cells', 'list'], down);
  assert.equal(code, 1);
  assert.match(stdout, /eu2 {2}active {2}0 apps.*\n {4}unreachable/);
  assert.equal((await list([{ name: 'eu1' }]))[1]?.state, 'unlisted');
});
