import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { DatabaseAddress } from '../../src/db/address.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { DirectoryLockedError } from '../../src/db/directory-lock.ts';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../../src/db/embedded.ts';
import { EmbeddedPostgresError } from '../../src/db/postgres-error.ts';
import { createLogger } from '../../src/lib/log.ts';
import { installCluster } from '../support/cluster.ts';

const log = createLogger('silent');
const root = mkdtempSync(join(tmpdir(), 'quarry-embedded-test-'));
chmodSync(root, 0o755);
const children = new Set<ChildProcess>();

after(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
});

/** A data directory with an existing database. */
function madeDirectory(name: string): string {
  const dataDir = join(root, name);
  installCluster(dataDir);
  return dataDir;
}

async function query<T>(address: DatabaseAddress, use: (sql: Database) => Promise<T>): Promise<T> {
  const sql = openDatabase(address, { poolSize: 1, applicationName: 'quarry-test' });
  try {
    return await use(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** A separate process that serves the directory until it is killed. */
async function startChild(dataDir: string, env: NodeJS.ProcessEnv = process.env): Promise<ChildProcess> {
  const script = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(new URL('../../src/db/embedded.ts', import.meta.url).href)});
    const { createLogger } = await import(${JSON.stringify(new URL('../../src/lib/log.ts', import.meta.url).href)});
    await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, log: createLogger('silent') });
    process.stdout.write('ready');
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env,
  });
  children.add(child);
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`the child ended with ${code}`)));
  });
  return child;
}

function kill(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

test('a first start creates a durable UTF-8 database, and a later start finds what was written', async () => {
  const dataDir = join(root, 'plain');
  const first = await startEmbeddedPostgres({ dataDir, log });
  const settings = await query(first.address, async (sql) => {
    await sql`create table note (text text)`;
    await sql`insert into note values (${'žluť'})`;
    const names = ['listen_addresses', 'fsync', 'synchronous_commit', 'server_encoding', 'data_checksums', 'TimeZone'];
    return sql<
      { name: string; setting: string }[]
    >`select name, setting from pg_settings where name = any(${names}) order by name`;
  });
  assert.deepEqual(Object.fromEntries(settings.map(({ name, setting }) => [name, setting])), {
    TimeZone: 'UTC',
    data_checksums: 'on',
    fsync: 'on',
    listen_addresses: '',
    server_encoding: 'UTF8',
    synchronous_commit: 'on',
  });
  assert.deepEqual(findEmbeddedPostgres(dataDir), first.address);
  await first.stop();
  await first.stop();
  await first.ended;
  assert.equal(findEmbeddedPostgres(dataDir), undefined);

  const second = await startEmbeddedPostgres({ dataDir, log });
  const rows = await query(second.address, (sql) => sql`select text, upper(text) as upper from note`);
  await second.stop();
  assert.deepEqual([...rows], [{ text: 'žluť', upper: 'ŽLUŤ' }]);
});

test('only the server can enter the socket directory', async () => {
  const server = await startEmbeddedPostgres({ dataDir: madeDirectory('private'), log });
  const mode = statSync(server.address.host).mode & 0o777;
  await server.stop();
  assert.equal(mode, 0o700);
});

test('the environment of the server is not passed to PostgreSQL', { skip: process.platform !== 'linux' }, async () => {
  process.env.EMBEDDED_TEST_SECRET = 'hunter2hunter2';
  const dataDir = madeDirectory('environment');
  const server = await startEmbeddedPostgres({ dataDir, log });
  const pid = Number.parseInt(readFileSync(join(dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8'), 10);
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
  await server.stop();
  delete process.env.EMBEDDED_TEST_SECRET;
  assert.ok(!environment.includes('hunter2'));
});

test('a second server on the same data directory is refused with the process that holds it', async () => {
  const dataDir = madeDirectory('twice');
  const holder = await startChild(dataDir);
  await assert.rejects(startEmbeddedPostgres({ dataDir, log }), (error) => {
    assert.ok(error instanceof DirectoryLockedError);
    assert.equal(error.pid, holder.pid);
    assert.match(error.message, new RegExp(`process ${holder.pid}`));
    return true;
  });
  await kill(holder);
  const next = await startEmbeddedPostgres({ dataDir, log });
  await next.stop();
});

test('after kill -9 of the server the orphaned PostgreSQL is stopped and nothing committed is lost', async () => {
  const dataDir = madeDirectory('orphan');
  const holder = await startChild(dataDir);
  const address = findEmbeddedPostgres(dataDir);
  assert.ok(address);
  await query(address, async (sql) => {
    await sql`create table note (id int)`;
    await sql`insert into note values (1)`;
  });
  await kill(holder);
  const next = await startEmbeddedPostgres({ dataDir, log });
  const rows = await query(next.address, (sql) => sql`select id from note`);
  await next.stop();
  assert.deepEqual([...rows], [{ id: 1 }]);
});

test('after kill -9 of the server and of PostgreSQL the next start recovers', async () => {
  const dataDir = madeDirectory('power-cut');
  const holder = await startChild(dataDir);
  const address = findEmbeddedPostgres(dataDir);
  assert.ok(address);
  await query(address, async (sql) => {
    await sql`create table note (id int)`;
    await sql`insert into note values (1)`;
  });
  await kill(holder);
  const pid = Number.parseInt(readFileSync(join(dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8'), 10);
  process.kill(pid, 'SIGKILL');
  const next = await startEmbeddedPostgres({ dataDir, log });
  const rows = await query(next.address, (sql) => sql`select id from note`);
  await next.stop();
  assert.deepEqual([...rows], [{ id: 1 }]);
});

test('a pid file with an id that now belongs to another program does not prevent the start', async () => {
  const dataDir = madeDirectory('stale');
  const first = await startEmbeddedPostgres({ dataDir, log });
  const pidFile = join(dataDir, 'postgres', 'cluster', 'postmaster.pid');
  const lines = readFileSync(pidFile, 'utf8').split('\n');
  await first.stop();
  writeFileSync(pidFile, [process.ppid, ...lines.slice(1)].join('\n'));
  writeFileSync(join(first.address.host, '.s.PGSQL.5432.lock'), [process.ppid, ...lines.slice(1)].join('\n'));
  const second = await startEmbeddedPostgres({ dataDir, log });
  await second.stop();
});

test('a cluster whose creation was interrupted is created again', async () => {
  const dataDir = join(root, 'half');
  const unfinished = join(dataDir, 'postgres', 'unfinished-1-1');
  mkdirSync(unfinished, { recursive: true });
  writeFileSync(join(unfinished, 'PG_VERSION'), '18\n');
  const server = await startEmbeddedPostgres({ dataDir, log });
  await server.stop();
  assert.ok(!existsSync(unfinished));
});

test('a server killed while it creates the database leaves nothing that prevents the next start', async () => {
  const dataDir = join(root, 'cut-off');
  const place = join(dataDir, 'postgres');
  const starting = startChild(dataDir);
  starting.catch(() => {});
  const isUnderWay = () => existsSync(place) && readdirSync(place).some((name) => name.startsWith('unfinished-'));
  while (!isUnderWay()) await setImmediate();
  const [child] = [...children].slice(-1);
  assert.ok(child);
  await kill(child);
  const server = await startEmbeddedPostgres({ dataDir, log });
  const rows = await query(server.address, (sql) => sql`select 1 as one`);
  await server.stop();
  assert.deepEqual([...rows], [{ one: 1 }]);
});

test('a cluster of another major version is refused with a reason and left unchanged', async () => {
  const dataDir = join(root, 'older');
  const cluster = join(dataDir, 'postgres', 'cluster');
  mkdirSync(cluster, { recursive: true });
  writeFileSync(join(cluster, 'PG_VERSION'), '16\n');
  await assert.rejects(startEmbeddedPostgres({ dataDir, log }), (error) => {
    assert.ok(error instanceof EmbeddedPostgresError);
    assert.match(error.message, /PostgreSQL 16.*includes 18/);
    return true;
  });
  assert.equal(readFileSync(join(cluster, 'PG_VERSION'), 'utf8'), '16\n');
});

test('a data directory with a path too long for a socket works', async () => {
  const dataDir = join(root, 'd'.repeat(100));
  const server = await startEmbeddedPostgres({ dataDir, log });
  const rows = await query(server.address, (sql) => sql`select 1 as one`);
  await server.stop();
  assert.deepEqual([...rows], [{ one: 1 }]);
  rmSync(server.address.host, { recursive: true, force: true });
});

test('a data directory with blanks, commas and quotes in its name works', async () => {
  const server = await startEmbeddedPostgres({ dataDir: join(root, `a b,c"d'e`), log });
  const rows = await query(server.address, (sql) => sql`select 1 as one`);
  await server.stop();
  assert.deepEqual([...rows], [{ one: 1 }]);
});

test('root with a data directory that only root may enter keeps the database where PostgreSQL can reach it', {
  skip: process.getuid?.() !== 0,
}, async () => {
  const closed = join(root, 'closed');
  mkdirSync(closed, { mode: 0o700 });
  const dataDir = join(closed, 'data');
  const first = await startEmbeddedPostgres({ dataDir, log });
  await query(first.address, (sql) => sql`create table note (id int)`);
  await first.stop();
  const place = readFileSync(join(dataDir, 'postgres.place'), 'utf8').trim();
  try {
    chmodSync(closed, 0o755);
    const second = await startEmbeddedPostgres({ dataDir, log });
    const rows = await query(second.address, (sql) => sql`select count(*)::int as count from note`);
    await second.stop();
    assert.deepEqual([...rows], [{ count: 0 }]);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
  await assert.rejects(startEmbeddedPostgres({ dataDir, log }), /is no longer there/);
});
