import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { openDirectory } from '../../../src/backup/archive.ts';
import { BackupError } from '../../../src/backup/error.ts';
import { formatManifest, readManifest } from '../../../src/backup/manifest.ts';
import { Progress } from '../../../src/backup/progress.ts';
import type { RestoreOptions } from '../../../src/backup/restore.ts';
import { takeBackup } from '../../../src/backup/take.ts';
import { verifyBackup } from '../../../src/backup/verify.ts';
import type { BlobStore } from '../../../src/blob/blob-store.ts';
import { openS3BlobStore } from '../../../src/blob/s3.ts';
import { type Database, production } from '../../../src/db/database.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { openRegister } from '../../../src/erasures/register.ts';
import { replayErasures } from '../../../src/erasures/replay.ts';
import type { ErasureRow } from '../../../src/erasures/store.ts';
import { sweepBlobs } from '../../../src/files/sweep.ts';
import { addJob } from '../../../src/jobs/queue.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { Secrets } from '../../../src/tenancy/secrets.ts';
import { assertSameShape, backupDeps, createEmptiness, type Emptiness, restoreInto } from '../../support/backups.ts';
import type { FileBody } from '../../support/files.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startS3Server } from '../../support/s3-server.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

const directory = mkdtempSync(join(tmpdir(), 'quarry-backup-test-'));
const progress = new Progress(() => {});
const filesCount = 5;

let server: TestServer;
let app: TestApp;
let whole: string;
before(async () => {
  // No job may change what a test compares.
  server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
  app = await server.provision.app();
  // What a process has queued (uses of keys, entries of the audit log) is in the database when it has stopped.
  const stopped = await startTestServer({ beside: server, env: { QUARRY_JOB_WORKERS: '0' } });
  for (let at = 0; at < filesCount; at++) await upload(`contents ${at}`, stopped);
  await changeDocument(stopped);
  await stopped.close();
  whole = join(directory, 'whole');
  await takeBackup(deps(), whole);
});
after(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of opened.splice(0)) await end();
});

const deps = (blobs?: BlobStore) => backupDeps(server, blobs);

async function createEmpty(): Promise<Emptiness> {
  const empty = await createEmptiness(server, directory);
  opened.push(empty.end);
  return empty;
}

const restore = (from: string, into: Emptiness, more?: Partial<RestoreOptions>) =>
  restoreInto(into, from, server, more);

/** A document with an old version, and a deleted one. */
async function changeDocument(to: TestServer): Promise<void> {
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const sent = await to.api<T>(method, `/api/v1${path}`, { key: app.secretKey, ...(body && { body }) });
    assert.ok(sent.status < 300, sent.text);
    return sent.body;
  };
  const org = (await call<{ id: string }>('POST', '/orgs', { name: 'Versions' })).id;
  const kind = { type: 'knowledge/documents', org, version_retention_days: 30 };
  const source = (await call<{ id: string }>('POST', '/knowledge_sources', kind)).id;
  const knowledge = knowledgeOf(to, { key: app.secretKey });
  const changed = await knowledge.push(source, 'What it was.');
  const content = { data: 'What it is.' };
  const change = await call<{ id: string }>('PATCH', `/knowledge_documents/${changed}`, { content });
  assert.equal((await knowledge.waitForIngestion(change.id)).status, 'succeeded');
  await call('DELETE', `/knowledge_documents/${await knowledge.push(source, 'What is gone.')}`);
}

async function upload(text: string, to = server): Promise<FileBody> {
  const answer = await to.api<FileBody>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'a', content_type: 'text/plain', data: Buffer.from(text).toString('base64') },
  });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

/** Every row of every table as text, by table. */
async function contentOf(db: Database): Promise<Record<string, string[]>> {
  const tables = await db<{ name: string }[]>`select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and relpersistence = 'p'
      and relname not in ('server_facts', 'schema_migrations', 'jobs') order by 1`;
  const content: Record<string, string[]> = {};
  for (const { name } of tables) {
    const rows = await db<{ row: string }[]>`select t::text as row from ${db(name)} t order by 1`;
    content[name] = rows.map(({ row }) => row);
  }
  return content;
}

test('every row, job and sequence is restored, and the schema is unchanged', async () => {
  const { db } = server;
  await addJob(db, 'one', { value: 1 }, { key: 'a key', maxAttempts: 7, priority: 3 });
  await addJob(db, 'two', { text: 'tab\t newline\n backslash \\ quote "' }, { inMs: 365 * 86_400_000 });
  // As a worker leaves a job that it works on, the second time.
  await db`update jobs set locked_at = now(), locked_by = 'somebody', attempts = 2, crashes = 1
    where key = 'a key'`;
  await db`select setval('knowledge_segment_numbers', 4711)`;
  const from = join(directory, 'rows');
  const manifest = await takeBackup(deps(), from);
  assert.deepEqual(manifest.tables.map(({ name }) => name).sort(), Object.keys(await contentOf(db)).sort());
  const empty = await createEmpty();
  await restore(from, empty);
  const restored = await contentOf(empty.db);
  assert.deepEqual(restored, await contentOf(db));
  assert.deepEqual([restored.knowledge_versions?.length, restored.knowledge_version_texts?.length], [2, 2]);
  await assertSameShape(empty.db, db);
  const jobs = (of: Database) => of`
    select task, priority, run_at, attempts, max_attempts, key, crashes, locked_by
    from jobs order by task`;
  const expected = (await jobs(db)).map((job) =>
    job.key === 'a key' ? { ...job, attempts: 1, lockedBy: null } : { ...job },
  );
  assert.deepEqual(
    (await jobs(empty.db)).map((job) => ({ ...job })),
    expected,
    'what was running is as if it had not started',
  );
  const payloads = (of: Database) => of`select payload from jobs order by id`;
  assert.deepEqual([...(await payloads(empty.db))], [...(await payloads(db))]);
  const [next] = await empty.db`select nextval('knowledge_segment_numbers') as number`;
  assert.equal(next?.number, 4712);
});

test('a table of many parts, and rows larger than a part, are restored', async () => {
  const insert = (from: number, to: number, length: number) => server.db`
    insert into events (app_id, id, sandbox_id, name, payload)
    select ${app.app.uuid}, gen_random_uuid(), ${app.sandboxUuid}, 'many.' || n,
      to_json(repeat(md5(n::text) || E'\n\t\\N', ${Math.floor(length / 36)}))
    from generate_series(${from}::integer, ${to}::integer) n`;
  await insert(1, 18_000, 500);
  await insert(18_001, 18_002, 10_000_000);
  const from = join(directory, 'many');
  const manifest = await takeBackup(deps(), from);
  assert.ok((manifest.tables.find(({ name }) => name === 'events')?.parts.length ?? 0) >= 3);
  const empty = await createEmpty();
  await restore(from, empty);
  const sums = (db: Database) => db`select md5(string_agg(md5(payload::text), '' order by name)), count(*) from events`;
  assert.deepEqual([...(await sums(empty.db))], [...(await sums(server.db))]);
  await server.db`delete from events`;
});

test('files that are deleted during a backup are in it, and are removed once it has ended', async () => {
  const doomed = [await upload('first'), await upload('second')];
  const { blobs } = server.services;
  const reading = Promise.withResolvers<void>();
  const resume = Promise.withResolvers<void>();
  const slow: BlobStore = {
    ...blobs,
    async read(key, range) {
      reading.resolve();
      await resume.promise;
      return blobs.read(key, range);
    },
  };
  const from = join(directory, 'deleted');
  const taking = takeBackup(deps(slow), from);
  await reading.promise;
  for (const { id } of doomed)
    assert.equal((await server.api('DELETE', `/api/v1/files/${id}`, { key: app.secretKey })).status, 204);
  await sweepBlobs({ db: server.db, blobs });
  await assert.rejects(takeBackup(deps(), join(directory, 'other')), /Another backup/);
  resume.resolve();
  const manifest = await taking;
  assert.equal(manifest.blobs.count, filesCount + doomed.length);
  const swept = await sweepBlobs({ db: server.db, blobs });
  assert.equal(swept.blobs, doomed.length);
  const empty = await createEmpty();
  await restore(from, empty);
  assert.equal((await empty.db`select 1 from files`).length, filesCount + doomed.length);
});

test('a file whose contents are missing fails the backup, and nothing that looks like a backup is left', async () => {
  const { blobs } = server.services;
  const without: BlobStore = { ...blobs, read: () => blobs.read('none/none') };
  const to = join(directory, 'missing');
  await assert.rejects(takeBackup(deps(without), to), /do not match their rows/);
  assert.ok(!readdirSync(directory).some((name) => name.startsWith('missing')));
});

test('S3 to disk and back keeps every byte', async () => {
  const s3 = await startS3Server();
  const bucket = openS3BlobStore(s3.options);
  try {
    const empty = await createEmpty();
    await restore(whole, { ...empty, blobs: bucket });
    const from = join(directory, 'from-s3');
    const manifest = await takeBackup({ ...deps(bucket), target: empty.target }, from);
    assert.equal(manifest.blobs.count, filesCount);
    await verifyBackup(openDirectory(from), progress);
    const other = await createEmpty();
    await restore(from, other);
    assert.deepEqual(await contentOf(other.db), await contentOf(empty.db));
    // The contents that the bucket still has are used as they are.
    const third = await createEmpty();
    await assert.rejects(restore(from, { ...third, blobs: bucket }), /blob store is not empty/);
    await restore(
      from,
      { ...third, blobs: { ...bucket, put: () => Promise.reject(new Error('written')) } },
      {
        reuseBlobs: true,
      },
    );
  } finally {
    await bucket.close();
    await s3.stop();
  }
});

test('any damage is found, and the restore writes nothing', async () => {
  const files = (from: string) =>
    readdirSync(from, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  const damages: [name: string, damage: (from: string) => void][] = [
    ['a bit of rows', (from) => flip(files(from).find((file) => file.includes('rows/files.')))],
    ['a bit of the jobs or of the list', (from) => flip(files(from).find((file) => file.includes('blob-list')))],
    ['a bit of a blob', (from) => flip(files(join(from, 'blobs'))[0])],
    ['a blob', (from) => unlinkSync(files(join(from, 'blobs'))[0] ?? '')],
    ['rows', (from) => unlinkSync(files(from).find((file) => file.includes('rows/')) ?? '')],
    ['the manifest', (from) => flip(join(from, 'manifest.json'))],
    ['the end', (from) => unlinkSync(join(from, 'manifest.sha256'))],
  ];
  const empty = await createEmpty();
  for (const [name, damage] of damages) {
    const from = join(directory, 'damaged');
    cpSync(whole, from, { recursive: true });
    damage(from);
    await assert.rejects(verifyBackup(openDirectory(from), progress), BackupError, name);
    await assert.rejects(restore(from, empty), BackupError, name);
    rmSync(from, { recursive: true });
  }
  assert.equal((await empty.db`select 1 from pg_class where relnamespace = 'public'::regnamespace`).length, 0);
  await restore(whole, empty);
});

function flip(file = ''): void {
  const bytes = readFileSync(file);
  const at = Math.floor(bytes.length / 2);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(file, bytes);
}

test('no name in a manifest leads outside the backup', async () => {
  const manifest = await readManifest(openDirectory(whole));
  writeFileSync(join(directory, 'outside'), 'A secret of another program.');
  const outside = { name: '../outside', bytes: 28, sha256: '0'.repeat(64) };
  const names = [
    '../outside',
    '/etc/passwd',
    'rows/../../outside',
    'rows/..',
    '.',
    'rows\\..\\..\\outside',
    'rows//a',
    '',
  ];
  const empty = await createEmpty();
  for (const name of names) {
    const from = join(directory, 'leading-out');
    cpSync(whole, from, { recursive: true });
    const { text, sum } = formatManifest({ ...manifest, secret: { ...outside, name } });
    writeFileSync(join(from, 'manifest.json'), text);
    writeFileSync(join(from, 'manifest.sha256'), sum);
    const invalid = { name: 'Error', message: 'manifest.json is not a valid backup manifest.' };
    await assert.rejects(verifyBackup(openDirectory(from), progress), invalid, name);
    await assert.rejects(restore(from, empty), invalid, name);
    rmSync(from, { recursive: true });
  }
});

test('an interrupted restore prevents servers from starting, and completes when it is repeated', async () => {
  const empty = await createEmpty();
  let puts = 0;
  const failing: BlobStore = {
    ...empty.blobs,
    put: (key, body, options) => {
      puts += 1;
      return puts > 2 ? Promise.reject(new Error('broken')) : empty.blobs.put(key, body, options);
    },
  };
  await assert.rejects(restore(whole, { ...empty, blobs: failing }), /broken/);
  await assert.rejects(migrate(empty.db), /was not restored completely/);
  const other = join(directory, 'whole-2');
  await takeBackup(deps(), other);
  await assert.rejects(restore(other, empty), /restore of another backup/);
  await restore(whole, empty);
  assert.equal((await empty.db`select 1 from files`).length, filesCount);
  await migrate(empty.db);
  await assert.rejects(restore(whole, empty), /database is not empty/);
});

test('a restore that is started again while it still runs is refused', async () => {
  const empty = await createEmpty();
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const slow: BlobStore = {
    ...empty.blobs,
    async put(key, body, options) {
      begun.resolve();
      await goOn.promise;
      return empty.blobs.put(key, body, options);
    },
  };
  const first = restore(whole, { ...empty, blobs: slow });
  try {
    await begun.promise;
    await assert.rejects(restore(whole, empty), /Another restore into this database is running/);
  } finally {
    goOn.resolve();
    await first;
  }
  assert.equal((await empty.db`select 1 from files`).length, filesCount);
});

test('another root secret, a newer release and a database in use are refused before anything is written', async () => {
  const empty = await createEmpty();
  const secrets = new Secrets('0123456789abcdef0123456789abcdef');
  await assert.rejects(restore(whole, empty, { openSecrets: () => secrets }), /root secret differs from the one/);
  const newer = join(directory, 'newer');
  cpSync(whole, newer, { recursive: true });
  const manifest = await readManifest(openDirectory(newer));
  manifest.migrations.push({ version: 9_999, name: '9999_later.sql', checksum: '' });
  const { text, sum } = formatManifest(manifest);
  writeFileSync(join(newer, 'manifest.json'), text);
  writeFileSync(join(newer, 'manifest.sha256'), sum);
  await assert.rejects(restore(newer, empty), /from a newer release/);
  await assert.rejects(
    restore(whole, { ...empty, db: server.db, target: server.services.directTarget }),
    /database is not empty/,
  );
  assert.equal((await empty.db`select 1 from pg_class where relnamespace = 'public'::regnamespace`).length, 0);
});

test('a restore repeats the erasures of the register before a server may use the rows', async () => {
  const register = join(directory, 'register');
  const user = await server.provision.user(app);
  const made = await server.api<{ id: string }>('POST', '/api/v1/files', {
    token: user.token,
    body: { filename: 'x.txt', content_type: 'text/plain', data: 'eA==' },
  });
  assert.equal(made.status, 201, made.text);
  const before = join(directory, 'before-erasure');
  await takeBackup(deps(), before);
  const { secrets } = server.services;
  const order = {
    ...{ appId: app.app.uuid, sandboxId: production, id: newUuid(), subjectKind: 'user', subjectId: user.uuid },
    ...{ withFiles: false, createdAt: systemClock.now() },
  } as ErasureRow;
  await openRegister(register, secrets).add(order);
  const empty = await createEmpty();
  let isFirst = true;
  const finish = async (db: Database) => {
    assert.equal(await replayErasures({ db, secrets, clock: systemClock }, register), 1);
    if (isFirst) throw new Error('killed');
  };
  await assert.rejects(restore(before, empty, { finish }), /killed/);
  await assert.rejects(migrate(empty.db), /was not restored completely/);
  isFirst = false;
  await restore(before, empty, { finish });
  const ofUser = await empty.db`
    select id from users where id = ${user.uuid} union all select id from files where user_id = ${user.uuid}`;
  assert.equal(ofUser.length, 0);
  await migrate(empty.db);
  const other = new Secrets('another root secret of enough length, 32 bytes');
  await assert.rejects(replayErasures({ db: empty.db, secrets: other, clock: systemClock }, register), /signed/);
});
