import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type Archive, openDirectory } from '../../../src/backup/archive.ts';
import { formatManifest, type Part, type RowsEntry, readManifest } from '../../../src/backup/manifest.ts';
import { readRows, writePart } from '../../../src/backup/parts.ts';
import { takeBackup } from '../../../src/backup/take.ts';
import type { Database } from '../../../src/db/database.ts';
import { migrate, readMigrations, replacingVersion } from '../../../src/db/migrate.ts';
import { assertSameShape, backupDeps, createEmptiness, type Emptiness, restoreInto } from '../../support/backups.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

const directory = mkdtempSync(join(tmpdir(), 'quarry-backup-test-'));
const opened: Emptiness[] = [];
let server: TestServer;
before(async () => {
  server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
  const app = await server.provision.app();
  await server.provision.user(app);
});
after(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});
afterEach(async () => {
  for (const { end } of opened.splice(0)) await end();
});

async function createEmpty(): Promise<Emptiness> {
  const empty = await createEmptiness(server, directory);
  opened.push(empty);
  return empty;
}

test('a backup from before the first release, with other migrations and without the table of credentials, is restored', async () => {
  const from = join(directory, 'old-numbering');
  await takeBackup(backupDeps(server), from);
  const manifest = await readManifest(openDirectory(from));
  const later = (await readMigrations()).filter(({ version }) => version > replacingVersion).map(({ sql }) => sql);
  const findAll = (pattern: RegExp) =>
    later.flatMap((sql) => [...sql.matchAll(pattern)].map((match) => match.slice(1)));
  const unknown = new Set(['credentials', ...findAll(/^create table (\w+)/gm).flat()]);
  const changes = findAll(/^alter table (\w+)([^;]*)/gm) as [table: string, change: string][];
  const added = new Set(
    changes.flatMap(([table, change]) =>
      [...change.matchAll(/add column (\w+)/g)].map(([, name]) => `${table}.${name}`),
    ),
  );
  const tables = await Promise.all(
    manifest.tables
      .filter(({ name }) => !unknown.has(name))
      .map((table) => keepColumns(openDirectory(from), table, (column) => !added.has(`${table.name}.${column}`))),
  );
  const sequences = manifest.sequences.filter(
    ({ name }) => ![...unknown].some((table) => name.startsWith(`${table}_`)),
  );
  const old = { ...manifest, tables, sequences };
  const checksum = '373ea1a461a092e84b792ef16e72c67777cfa80203dd1678201c4d223ef653f7';
  const writeWith = (count: number) => {
    const migrations = Array.from({ length: count }, (_, n) => ({ version: n + 1, name: `${n + 1}`, checksum }));
    const { text, sum } = formatManifest({ ...old, migrations });
    writeFileSync(join(from, 'manifest.json'), text);
    writeFileSync(join(from, 'manifest.sha256'), sum);
  };
  writeWith(13);
  await assert.rejects(restoreInto(await createEmpty(), from, server), /13 of the 14 migrations/);
  writeWith(14);
  const empty = await createEmpty();
  await restoreInto(empty, from, server);
  await assertSameShape(empty.db, server.db);
  assert.deepEqual(await credentialsOf(empty.db), await credentialsOf(server.db));
});

/** The table as a backup of a release that had only these columns: fields of a row are divided by tabs. */
async function keepColumns(
  archive: Archive,
  table: RowsEntry,
  isKept: (column: string) => boolean,
): Promise<RowsEntry> {
  const columns = table.columns.filter(isKept);
  if (columns.length === table.columns.length) return table;
  const parts: Part[] = [];
  for (const part of table.parts)
    for await (const rows of readRows(archive, [part])) {
      const lines = rows
        .toString()
        .split('\n')
        .map((line) => line.split('\t').filter((_field, at) => isKept(table.columns[at] ?? '')));
      parts.push(
        await writePart(
          archive,
          part.name.replace('rows/', 'rows/old-'),
          gzipSync(lines.map((fields) => fields.join('\t')).join('\n')),
        ),
      );
    }
  return { ...table, columns, parts };
}

async function credentialsOf(db: Database): Promise<string[]> {
  const rows = await db<{ line: string }[]>`
    select encode(digest, 'hex') || app_id as line from credentials order by digest`;
  assert.ok(rows.length > 0);
  return rows.map(({ line }) => line);
}

test('a backup of a database of release 0.1.0 is refused, because its jobs are in other tables', async () => {
  const own = await readMigrations();
  const old = await createEmpty();
  const jobsMigration = own.findIndex(({ name }) => name.endsWith('_jobs.sql'));
  await migrate(old.db, own.slice(0, jobsMigration));
  const taking = takeBackup({ ...backupDeps(server, old.blobs), target: old.target }, join(directory, 'older'));
  await assert.rejects(taking, /has the tables of release 0.1.0/);
});
