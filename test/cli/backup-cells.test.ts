import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openDirectory } from '../../src/backup/archive.ts';
import { readManifest } from '../../src/backup/manifest.ts';
import { Directory } from '../../src/cells/move/directory.ts';
import { continueMove } from '../../src/cells/move/move.ts';
import { addJob } from '../../src/jobs/queue.ts';
import { formatId, newUuid, parseId } from '../../src/lib/ids.ts';
import { digest, generateCredential } from '../../src/tenancy/secrets.ts';
import { startTwoCells, withoutWorkers } from '../support/cells.ts';
import { callQuarry } from '../support/command.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/database.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';

/** Backups of an installation with two cells: each is restored alone, while the other one has gone on. */

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-backup-cells-'));
const secret = randomBytes(32).toString('hex');
const databases: TestDatabase[] = [];
const urls = new Map<TestDatabase, Awaited<ReturnType<typeof openTcpProxy>>>();
after(async () => {
  await Promise.all([...urls.values()].map((proxy) => proxy.close()));
  await Promise.all(databases.map((database) => database.drop()));
  rmSync(dataDir, { recursive: true, force: true });
});

async function added(database: TestDatabase): Promise<TestDatabase> {
  databases.push(database);
  urls.set(database, await openTcpProxy(database.target));
  return database;
}

const first = await added(await createTestDatabase());
const second = await added(await createTestDatabase());
/** The databases of the installation: the directory, which is the cell eu1, and the cell eu2. */
const used = { first, second, dataDir, secret };

async function quarry(...args: string[]) {
  const url = (database: TestDatabase) => urls.get(database)?.url ?? '';
  const cells = [{ name: 'eu1' }, { name: 'eu2', database_url: url(used.second) }];
  const env = {
    ...{ QUARRY_DATA_DIR: dataDir, QUARRY_SECRET: secret, QUARRY_LOG_LEVEL: 'silent' },
    ...{ DATABASE_URL: url(used.first), QUARRY_CELLS: JSON.stringify({ cells }) },
  };
  return callQuarry(args, { env });
}

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await quarry(...args);
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

type Server = Awaited<ReturnType<typeof startTwoCells>>;
type App = { id: string; uuid: string; key: string };

const developerId = newUuid();
const token = generateCredential('dvt');
const developerApps = '/protected/api/v1/developer/apps';

/** Creates an app in the cell that is named. */
async function createApp(server: Server, cell: 'eu1' | 'eu2'): Promise<App> {
  const full = cell === 'eu1' ? 'eu2' : 'eu1';
  await used.first.db`update cells set state = case when name = ${full} then 'draining' else 'active' end`;
  const created = await server.api<{ id: string }>('POST', developerApps, { token, body: { name: cell } });
  assert.equal(created.status, 201, created.text);
  const { id } = created.body;
  const key = await server.api<{ full_key: string }>('POST', `${developerApps}/${id}/keys`, {
    ...{ token, body: { type: 'secret' } },
  });
  const app = { id, uuid: parseId('app', id) ?? '', key: key.body.full_key };
  await write(server, app, 'as it was');
  return app;
}

/** The app has one organization, whose name is what was written last. */
async function write(server: Server, { key, id }: App, name: string): Promise<void> {
  const org = orgs.get(id);
  const [method, path] = org === undefined ? ['POST', '/api/v1/orgs'] : ['PATCH', `/api/v1/orgs/${org}`];
  const { status, body, text } = await server.api<{ id: string }>(method, path, { key, body: { name } });
  assert.ok(status === 200 || status === 201, text);
  orgs.set(id, body.id);
}
const orgs = new Map<string, string>();
async function read(server: Server, { key, id }: App): Promise<unknown> {
  const { status, body } = await server.api('GET', `/api/v1/orgs/${orgs.get(id)}`, { key });
  return status === 200 ? body.name : status;
}
async function listed(server: Server): Promise<Set<string>> {
  const { body } = await server.api<{ data: { id: string }[] }>('GET', `${developerApps}?page_size=100`, { token });
  return new Set(body.data.map(({ id }) => id));
}
async function during<T>(work: (server: Server) => Promise<T>): Promise<T> {
  const server = await startTwoCells(withoutWorkers, used);
  try {
    return await work(server);
  } finally {
    await server.close();
  }
}

/** Moves an app, or ends the try at a point of the move. */
async function move({ uuid }: App, to: string, until?: string): Promise<void> {
  const cell = (name: string, { target }: TestDatabase) => ({ name, target, acceptsNewApps: true });
  const directory = new Directory(used.first.target, [cell('eu1', used.first), cell('eu2', used.second)]);
  await used.first.db`update cells set state = 'active'`;
  await directory.addMove(uuid, to);
  const stop = new Error(`The try ends at ${until}.`);
  const moved = continueMove({
    ...{ directory, appId: uuid, sourceKeptMs: 0 },
    onPoint(point) {
      if (point === until) throw stop;
    },
  });
  await moved.catch((error: unknown) => assert.equal(error, stop));
}

const backup = join(dataDir, 'backup');
const apps: Record<'home' | 'leaving' | 'staying' | 'coming', App> = await during(async (server) => {
  await first.db`insert into developers (id, name) values (${developerId}, 'Ada')`;
  await first.db`insert into developer_tokens (digest, id, developer_id)
    values (${digest(token)}, ${newUuid()}, ${developerId})`;
  return {
    home: await createApp(server, 'eu1'),
    coming: await createApp(server, 'eu1'),
    leaving: await createApp(server, 'eu2'),
    staying: await createApp(server, 'eu2'),
  };
});

test('one command backs up every database, each into a directory of its own', async () => {
  const output = await run('backup', backup);
  assert.match(output, /in .*backup\/directory\n.*in .*backup\/eu2\n/);
  const cellOf = async (name: string) => (await readManifest(openDirectory(join(backup, name)))).cell;
  assert.equal((await cellOf('directory'))?.name, 'eu1');
  assert.equal((await cellOf('eu2'))?.name, 'eu2');
  assert.match(await run('backup', join(dataDir, 'alone'), '--cell', 'eu2'), /in .*\/alone\n/);
  assert.match((await quarry('backup', join(dataDir, 'no'), '--cell', 'eu9')).stderr, /QUARRY_CELLS has no cell eu9/);
});

test('a restored cell gives up apps that have moved away, and those that it lost are not listed', async () => {
  await move(apps.leaving, 'eu1');
  const late = await during(async (server) => {
    await write(server, apps.leaving, 'later');
    await write(server, apps.staying, 'later');
    return createApp(server, 'eu2');
  });
  used.second = await added(await createEmptyDatabase());
  // Servers and commands that find the empty database leave it empty for the restore.
  await during(async (server) => assert.equal(await read(server, apps.staying), 503));
  assert.match((await quarry('cells', 'list')).stdout, /its database is empty: quarry restore DIRECTORY\/eu2/);
  for (const command of [['migrate'], ['cells', 'add', 'eu2']]) {
    const refused = await quarry(...command);
    assert.match(refused.stdout + refused.stderr, /knows the cell eu2 with another database/, command.join(' '));
  }
  const wrong = await quarry('restore', join(backup, 'eu2'));
  assert.match(wrong.stderr, /backup of the cell eu2: add --cell eu2/);
  const other = await quarry('restore', join(backup, 'directory'), '--cell', 'eu2');
  assert.match(other.stderr, /backup of the directory: leave out --cell/);
  const output = await run('restore', join(backup, 'eu2'), '--cell', 'eu2');
  assert.match(output, new RegExp(`${apps.leaving.id}: deleted, because it is in another cell`));
  assert.match(output, new RegExp(`${late.id}: not in this database`));
  await during(async (server) => {
    assert.equal(await read(server, apps.staying), 'as it was');
    assert.equal(await read(server, apps.leaving), 'later');
    assert.equal(await read(server, late), 401);
    assert.deepEqual(await listed(server), new Set(Object.values(apps).map(({ id }) => id)));
    await write(server, apps.staying, 'again');
  });
  for (const table of ['orgs', 'api_keys', 'credentials', 'jobs']) {
    const rows = await used.second.db`select from ${used.second.db(table)} where app_id = ${apps.leaving.uuid}`;
    assert.equal(rows.length, 0, table);
  }
});

test('a restored directory learns from the cells where apps are now', async () => {
  await move(apps.coming, 'eu2');
  const late = await during(async (server) => {
    await write(server, apps.coming, 'later');
    return createApp(server, 'eu2');
  });
  used.first = await added(await createEmptyDatabase());
  const output = await run('restore', join(backup, 'directory'));
  assert.match(output, new RegExp(`eu1:\n  ${apps.coming.id}: deleted, because it is in another cell`));
  assert.match(output, new RegExp(`${late.id}: listed in the directory`));
  await during(async (server) => {
    assert.equal(await read(server, apps.home), 'as it was');
    assert.equal(await read(server, apps.coming), 'later');
    assert.equal(await read(server, apps.staying), 'again');
    assert.equal(await read(server, late), 'as it was');
    const { home, coming, staying } = apps;
    // The app that had moved into the directory's cell after the backup is lost, like everything of that time there.
    assert.deepEqual(await listed(server), new Set([home, coming, staying, late].map(({ id }) => id)));
  });
});

test('a database that was restored by other means is refused until it agrees with the directory', async () => {
  await used.first.db`update cell_apps set cell = 'eu1' where app_id = ${apps.staying.uuid}`;
  const found = await quarry('cells', 'list');
  assert.equal(found.code, 1);
  assert.match(found.stdout, new RegExp(`eu2 has ${formatId('app', apps.staying.uuid)}, .*quarry cells reconcile eu2`));
  await during(async (server) => assert.equal(await read(server, apps.coming), 503));
  assert.match(await run('cells', 'reconcile', 'directory'), new RegExp(`${apps.staying.id}: listed in the directory`));
  await run('cells', 'list');
  await during(async (server) => assert.equal(await read(server, apps.staying), 'again'));
  await used.first.db`update cell_apps set cell = 'eu1' where app_id = ${apps.staying.uuid}`;
  assert.match(await run('cells', 'reconcile', 'eu2'), new RegExp(`${apps.staying.id}: deleted`));
  assert.match(await run('cells', 'reconcile', 'eu2'), /eu2 agrees with the directory/);
});

test('a backup from the middle of a move has the app once, with its jobs', async () => {
  const place = join(dataDir, 'moving');
  await addJob(used.first.db, 'later', { appId: apps.home.uuid });
  await move(apps.home, 'eu2', 'last round');
  await run('backup', place);
  used.first = await added(await createEmptyDatabase());
  used.second = await added(await createEmptyDatabase());
  await run('restore', join(place, 'directory'));
  assert.match(
    await run('restore', join(place, 'eu2'), '--cell', 'eu2'),
    new RegExp(`${apps.home.id}: deleted, because it is in another cell`),
  );
  await during(async (server) => {
    assert.equal(await read(server, apps.home), 'as it was');
    await write(server, apps.home, 'open again');
  });
  const jobsIn = async ({ db }: TestDatabase) => (await db`select from jobs where app_id = ${apps.home.uuid}`).length;
  assert.deepEqual([await jobsIn(used.first), await jobsIn(used.second)], [1, 0]);
});
