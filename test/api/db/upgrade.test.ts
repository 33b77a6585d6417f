import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { describeSchema } from '../../../scripts/describe-schema.ts';
import { openDirectory } from '../../../src/backup/archive.ts';
import { Progress } from '../../../src/backup/progress.ts';
import { restoreBackup } from '../../../src/backup/restore.ts';
import { takeBackup } from '../../../src/backup/take.ts';
import { openDiskBlobStore } from '../../../src/blob/disk.ts';
import { migrate, readMigrations } from '../../../src/db/migrate.ts';
import { Secrets } from '../../../src/tenancy/secrets.ts';
import { createEmptyDatabase } from '../../support/database.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestServer } from '../../support/server.ts';
import { readProjectFile } from '../../support/source.ts';
import { startIssuer } from '../../support/token-issuer.ts';
import { resumeWork, useInstallation } from '../../support/upgrade/installation.ts';
import {
  listReleases,
  loadRelease,
  type ReleasedDatabase,
  readBackup,
  saveRelease,
  writeBackup,
} from '../../support/upgrade/released-database.ts';

/*
 * A database of each release, with data in every domain, is brought to this schema and served. While the version of
 * migrations/release.json is not released, its database is made here each time. To keep it, once it is released:
 * npm run release:record
 */
const release: { version: string; released: boolean } = JSON.parse(readProjectFile('migrations/release.json'));
const isRecording = process.env.QUARRY_RECORD_RELEASE !== undefined;
const progress = new Progress(() => {});
const model = await startLanguageModel();
model.script = () => 'Good day.';
after(() => model.close());
const settings = { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'small', QUARRY_FETCH_ALLOW: '127.0.0.0/8' };

/** Tables that are empty in the database of a release, with the reason. */
const emptyTables: Record<string, string> = {
  ...forEach('rows only while a crawl is under way', ['crawl_hosts', 'crawl_pages', 'crawled_pages']),
  ...forEach('rows until a job has worked on them', [
    ...['doomed_blobs', 'knowledge_ingestion_items', 'knowledge_pull_removals', 'removed_knowledge_sources'],
  ]),
  automation_run_children: 'rows only while a run waits for an extraction or an ingestion',
  inbound_messages: 'only of inbound URLs with a signing secret, for minutes',
  ...forEach('learned from sources of hundreds of chunks, and learned again when they are missing', [
    ...['knowledge_models', 'knowledge_model_codes', 'knowledge_model_terms'],
  ]),
};

let made: Promise<ReleasedDatabase> | undefined;

for (const version of new Set([...listReleases(), release.version])) {
  const isMade = version === release.version && (isRecording || !release.released);
  test(`a database of ${version} with data in every domain is upgraded and served`, async () => {
    const old = await (isMade ? getMade() : loadRelease(version));
    assert.deepEqual(
      Object.keys(old.rows).filter((table) => old.rows[table] === '' && !(table in emptyTables)),
      [],
      'No data: use these tables in test/support/upgrade/installation.ts, or say there why not.',
    );
    if (isRecording && isMade) saveRelease(version, old);
    await assertUpgrades(isRecording && isMade ? loadRelease(version) : old);
  });
}

for (const version of listReleases())
  test(`a database of ${version} with a row in every table is upgraded with each of them`, async () => {
    const old = loadRelease(version);
    const filled = { ...old, rows: { ...old.rows, ...(await fillEmptyTables(old)) } };
    const empty = old.manifest.tables.filter(({ name }) => (filled.rows[name] ?? '') === '').map(({ name }) => name);
    assert.deepEqual(empty, []);
    const dataDir = mkdtempSync(join(tmpdir(), 'quarry-upgrade-'));
    const backup = await writeBackup(filled);
    const database = await createEmptyDatabase();
    try {
      const blobs = await openDiskBlobStore(join(dataDir, 'blobs'));
      const options = { openSecrets: () => new Secrets(old.secret), reuseBlobs: false };
      await restoreBackup({ ...database, blobs, progress }, openDirectory(backup), options);
      await blobs.close();
      for (const { name } of old.manifest.tables) {
        const [row] = await database.db<[{ count: number }]>`select count(*)::int as count from ${database.db(name)}`;
        const before = filled.rows[name]?.trimEnd().split('\n').length ?? 0;
        assert.ok(row.count >= before, `${name}: ${row.count} of ${before} rows`);
      }
    } finally {
      await database.drop();
      for (const directory of [backup, dataDir]) rmSync(directory, { recursive: true, force: true });
    }
  });

type Reference = { table: string; target: string; columns: string[]; targetColumns: string[] };

/** A row for each table that is empty in the database of a release, with a value in every column, as text of COPY. */
async function fillEmptyTables(old: ReleasedDatabase): Promise<ReleasedDatabase['rows']> {
  const { db, drop } = await createEmptyDatabase();
  try {
    const names = new Set(old.manifest.migrations.map(({ name }) => name));
    await migrate(
      db,
      (await readMigrations()).filter(({ name }) => names.has(name)),
    );
    const types = await db<{ table: string; column: string; type: string }[]>`
      select c.relname as table, a.attname as column, format_type(a.atttypid, null) as type
      from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'public'::regnamespace and a.attnum > 0 and not a.attisdropped`;
    const references = await db<Reference[]>`
      select c.conrelid::regclass::text as table, c.confrelid::regclass::text as target,
        array(select a.attname::text from unnest(c.conkey) with ordinality k (n, at)
          join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.n order by k.at) as columns,
        array(select a.attname::text from unnest(c.confkey) with ordinality k (n, at)
          join pg_attribute a on a.attrelid = c.confrelid and a.attnum = k.n order by k.at) as target_columns
      from pg_constraint c where c.contype = 'f'`;
    const typeOf = new Map(types.map(({ table, column, type }) => [`${table}.${column}`, type]));
    const columnsOf = new Map(old.manifest.tables.map(({ name, columns }) => [name, columns]));
    const rows: ReleasedDatabase['rows'] = {};
    const firstOf = (table: string, column: string): string | undefined => {
      const line = (rows[table] ?? old.rows[table] ?? '').split('\n')[0] ?? '';
      return line === '' ? undefined : line.split('\t')[columnsOf.get(table)?.indexOf(column) ?? -1];
    };
    // A table may refer to another empty one, so some need a second pass.
    for (let pass = 0; pass < 3; pass++)
      for (const [table, columns] of columnsOf) {
        if ((rows[table] ?? old.rows[table] ?? '') !== '') continue;
        const values = columns.map((column) => {
          const chosen = chosenValues[`${table}.${column}`];
          if (chosen !== undefined) return chosen;
          const to = references.find((each) => each.table === table && each.columns.includes(column));
          if (to !== undefined) return firstOf(to.target, to.targetColumns[to.columns.indexOf(column)] ?? '');
          return valueOfType[typeOf.get(`${table}.${column}`) ?? ''] ?? '\\N';
        });
        if (!values.includes(undefined)) rows[table] = `${values.join('\t')}\n`;
      }
    return rows;
  } finally {
    await drop();
  }
}

/** Values that the columns of a type accept, as text of COPY. */
const valueOfType: Record<string, string> = {
  uuid: '01900000-0000-7000-8000-000000000001',
  text: 'x',
  bytea: '\\\\x00',
  boolean: 't',
  jsonb: '{}',
  'text[]': '{}',
  'timestamp with time zone': '2026-01-01 00:00:00+00',
  date: '2026-01-01',
  ...Object.fromEntries(['smallint', 'integer', 'bigint', 'real', 'double precision'].map((type) => [type, '1'])),
};

/** Values of columns that do not accept every value of their type. */
const chosenValues: Record<string, string> = {
  'automation_run_children.child_kind': 'extraction',
  'crawl_hosts.state': 'closed',
  'crawl_pages.state': 'done',
  'knowledge_ingestion_items.state': 'done',
};

test('a database whose release had another migration is refused', async () => {
  const old = await (release.released ? loadRelease(release.version) : getMade());
  const [first, ...others] = old.manifest.migrations;
  assert.ok(first);
  const edited = { ...old.manifest, migrations: [{ ...first, checksum: 'of another text' }, ...others] };
  await assert.rejects(assertUpgrades({ ...old, manifest: edited }), /0001_tenancy.sql was edited after/);
});

/** Serves the database as this release, and compares every response with what the old one returned. */
async function assertUpgrades(old: ReleasedDatabase): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-upgrade-'));
  const backup = await writeBackup(old);
  const database = await createEmptyDatabase();
  try {
    const blobs = await openDiskBlobStore(join(dataDir, 'blobs'));
    const secrets = new Secrets(old.secret);
    const { db, target } = database;
    await restoreBackup({ db, target, blobs, progress }, openDirectory(backup), {
      openSecrets: () => secrets,
      reuseBlobs: false,
    });
    await blobs.close();
    assert.deepEqual(await migrate(db), [], 'the restore has brought the database to this release');
    assert.equal(await describeSchema(db), readProjectFile('migrations/schema.txt'));
    const clock = new ManualClock(new Date(old.manifest.taken_at));
    const server = await startTestServer({
      clock,
      env: settings,
      installed: { ...database, dataDir, secret: old.secret },
    });
    try {
      for (const { as, path, body } of old.responses) {
        const now = await server.api('GET', path, old.used.credentials[as] ?? {});
        assert.equal(now.status, 200, `${path}: ${now.text}`);
        assertKept(withoutAddresses(now.body, server.baseUrl), body, path);
      }
      await resumeWork(server, old.used);
    } finally {
      await server.close();
    }
    const own = await readMigrations();
    const next = { version: (own.at(-1)?.version ?? 0) + 1, name: 'next.sql', checksum: 'x', sql: nextMigration };
    assert.deepEqual(await migrate(db, [...own, next]), ['next.sql']);
    const [row] = await db`select count(*)::int as users, count(nickname)::int as nicknames from users`;
    assert.ok(row?.users > 0 && row?.users === row?.nicknames);
  } finally {
    await database.drop();
    for (const directory of [backup, dataDir]) rmSync(directory, { recursive: true, force: true });
  }
}

const nextMigration = 'alter table users add nickname text; update users set nickname = name;';

function getMade(): Promise<ReleasedDatabase> {
  made ??= makeDatabase();
  return made;
}

/** Starts a server of this release, uses it, and takes its backup. */
async function makeDatabase(): Promise<ReleasedDatabase> {
  const secret = randomBytes(32).toString('hex');
  const server = await startTestServer({
    env: { ...settings, QUARRY_SECRET: secret, QUARRY_QUOTA_SANDBOXES: '100' },
  });
  const site = await startSite({
    '/': htmlPage('Harbour', ['/prices']),
    '/prices': htmlPage('Prices of the harbour'),
    '/hook': 'ok',
  });
  const issuer = await startIssuer(() => new Date(), 'https://quarry.example');
  const directory = join(mkdtempSync(join(tmpdir(), 'quarry-upgrade-')), 'backup');
  try {
    const app = await server.provision.app();
    const used = await useInstallation(server, app, { site: site.origin, issuer });
    const responses: ReleasedDatabase['responses'] = [];
    for (const { as, path } of used.reads) {
      const { status, body, text } = await server.api('GET', path, used.credentials[as] ?? {});
      assert.equal(status, 200, `${path}: ${text}`);
      responses.push({ as, path, body: withoutAddresses(body, server.baseUrl) });
    }
    const { directTarget: target, blobs, secrets, clock } = server.services;
    await takeBackup({ target, blobs, secrets, clock, version: release.version, progress }, directory);
    return { secret, ...(await readBackup(directory)), used, responses };
  } finally {
    await server.close();
    await site.close();
    await issuer.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** URLs of this server name its port, and signed ones a time. */
function withoutAddresses(body: unknown, baseUrl: string): unknown {
  const text = JSON.stringify(body)
    .replaceAll(baseUrl, 'http://server')
    .replaceAll(/(token|expires|signature)=[^"&]+/g, '$1=…');
  return JSON.parse(text);
}

/** A later release may add members, and changes nothing else. */
function assertKept(now: unknown, before: unknown, place: string): void {
  if (Array.isArray(before) && Array.isArray(now)) {
    assert.equal(now.length, before.length, place);
    for (const [at, value] of before.entries()) assertKept(now[at], value, `${place}[${at}]`);
  } else if (isObject(before) && isObject(now))
    for (const [name, value] of Object.entries(before)) assertKept(now[name], value, `${place}.${name}`);
  else assert.deepEqual(now, before, place);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function forEach(reason: string, tables: string[]): Record<string, string> {
  return Object.fromEntries(tables.map((table) => [table, reason]));
}
