import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { openBlobStore } from '../blob/open.ts';
import { systemClock } from '../clock.ts';
import { type Config, readConfig } from '../config.ts';
import { findConfinement } from '../content/parse/pool/confinement.ts';
import { ParserPool } from '../content/parse/pool/pool.ts';
import { ownWorkerFile } from '../content/parse/pool/process.ts';
import type { Database } from '../db/database.ts';
import { type AppliedMigration, findMismatch, readMigrations } from '../db/migrate.ts';
import { newUuid } from '../ids.ts';
import { createLogger } from '../log.ts';
import { findSecret } from '../services.ts';
import { Secrets } from '../tenancy/secrets.ts';
import { explain } from './explain.ts';
import { withDatabase } from './with-database.ts';

type Finding = { level: 'ok' | 'warn' | 'fail'; words: string; cure?: string };
type Report = (name: string, finding: Finding) => void;

/** Looks at everything that a server needs and says, line by line, what is wrong and how to mend it. */
export async function run(): Promise<number> {
  let failed = false;
  const report: Report = (name, { level, words, cure }) => {
    failed ||= level === 'fail';
    process.stdout.write(`${level.padEnd(5)} ${name.padEnd(10)} ${words}\n`);
    if (cure !== undefined) process.stdout.write(`${' '.repeat(17)}${cure}\n`);
  };
  const examine = async (name: string, look: () => Promise<Finding | Finding[]>) => {
    try {
      for (const finding of [await look()].flat()) report(name, finding);
    } catch (error) {
      report(name, { level: 'fail', words: explain(error) });
    }
  };

  let config: Config | undefined;
  await examine('settings', async () => {
    config = readConfig();
    return { level: 'ok', words: 'all valid; `quarry config` shows them' };
  });
  if (config === undefined) return 1;
  const settings = config;
  await examine('disk', async () => lookAtDisk(settings));
  await examine('blobs', () => lookAtBlobs(settings));
  await examine('parsers', () => lookAtParsers(settings));
  await examine('database', () =>
    withDatabase(settings, createLogger('fatal'), async (db): Promise<Finding[]> => {
      for (const finding of await lookAtDatabase(db)) report('database', finding);
      await examine('clock', () => lookAtClock(db));
      await examine('secret', () => lookAtSecret(db, settings));
      await examine('jobs', () => lookAtJobs(db));
      return [];
    }),
  );
  return failed ? 1 : 0;
}

const gibibyte = 1024 ** 3;
const freeWarnBytes = 2 * gibibyte;
const freeFailBytes = 0.2 * gibibyte;
const clockWarnMs = 2_000;
const serverVersionMin = 150_000;
const noticeTimeoutMs = 3_000;

function lookAtDisk({ dataDir }: Config): Finding {
  let directory = dataDir;
  while (!existsSync(directory)) directory = dirname(directory);
  const { bavail, bsize } = statfsSync(directory);
  const free = bavail * bsize;
  const words = `${(free / gibibyte).toFixed(1)} GiB free below ${directory}`;
  if (free >= freeWarnBytes) return { level: 'ok', words };
  const cure = 'Make room, or move the data directory to a larger disk and set QUARRY_DATA_DIR.';
  return { level: free < freeFailBytes ? 'fail' : 'warn', words, cure };
}

async function lookAtBlobs(config: Config): Promise<Finding> {
  const store = await openBlobStore(config);
  const key = `${newUuid()}/${newUuid()}`;
  const bytes = Buffer.from('quarry doctor');
  try {
    await store.put(key, bytes, { contentType: 'text/plain' });
    const read = Buffer.from(await store.readAll(key, bytes.length));
    await store.remove(key);
    if (!read.equals(bytes)) return { level: 'fail', words: `the ${store.kind} store gave back other bytes` };
    return { level: 'ok', words: `the ${store.kind} store writes, reads and removes` };
  } catch (error) {
    const cure =
      store.kind === 's3'
        ? 'Check QUARRY_S3_ENDPOINT, QUARRY_S3_BUCKET, QUARRY_S3_REGION, QUARRY_S3_PATH_STYLE and the credentials.'
        : `Let this user write in ${config.dataDir}/blobs, or set QUARRY_DATA_DIR.`;
    return { level: 'fail', words: explainBriefly(error), cure };
  } finally {
    await store.close();
  }
}

async function lookAtParsers(config: Config): Promise<Finding | Finding[]> {
  const parser = new ParserPool({
    workers: 1,
    memoryMb: config.parseMemoryMb,
    deadlineMs: config.parseSeconds * 1000,
    log: createLogger('fatal'),
  });
  try {
    const bytes = Buffer.from('<h1>Quarry</h1><p>doctor</p>');
    const { markdown } = await parser.parse({ bytes, filename: 'doctor.html', contentType: 'text/html' });
    if (/^# Quarry\s+doctor\s*$/.test(markdown))
      return [{ level: 'ok', words: 'a child process reads documents' }, ...describeConfinement()];
    return { level: 'fail', words: 'a child process reads documents wrongly', cure: 'Install again with `npm ci`.' };
  } catch (error) {
    const cure = 'Raise QUARRY_PARSE_MEMORY_MB or QUARRY_PARSE_SECONDS, or install again with `npm ci`.';
    return { level: 'fail', words: explainBriefly(error), cure };
  } finally {
    await parser.close();
  }
}

/** What keeps a parser process from the rest of the system, beside Node's own permissions. */
function describeConfinement(): Finding[] {
  const { network, userId, readsAll, limits } = findConfinement(ownWorkerFile);
  const isRoot = process.getuid?.() === 0;
  const cure = 'docs/security.md, "Untrusted bytes", says what each system offers.';
  const networkFinding: Finding = network
    ? { level: 'ok', words: 'a network namespace of their own, which reaches nothing' }
    : { level: 'warn', words: 'no network isolation: only their network modules are closed', cure };
  const userFinding: Finding =
    userId === undefined
      ? isRoot
        ? { level: 'warn', words: 'they run as root, like the server', cure }
        : { level: 'ok', words: "they run as the server's own user" }
      : readsAll
        ? { level: 'ok', words: `they run as user ${userId}, with the right to read a program that only root can read` }
        : { level: 'ok', words: `they run as user ${userId}` };
  const limitsFinding: Finding = limits
    ? { level: 'ok', words: 'the system limits their processor time, data and file size' }
    : {
        level: 'warn',
        words: 'no limits of the system: the deadline and the memory limit of the heap stand alone',
        cure,
      };
  return [userFinding, networkFinding, limitsFinding];
}

async function lookAtDatabase(db: Database): Promise<Finding[]> {
  const [row] = await db<{ version: string; number: number; encoding: string }[]>`
    select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
      pg_encoding_to_char(encoding) as encoding
    from pg_database where datname = current_database()`;
  if (!row) throw new Error('The database does not know itself.');
  const version: Finding =
    row.number < serverVersionMin
      ? { level: 'fail', words: `PostgreSQL ${row.version}`, cure: 'Use PostgreSQL 15 or newer.' }
      : { level: 'ok', words: `PostgreSQL ${row.version}` };
  const encoding: Finding[] =
    row.encoding === 'UTF8'
      ? []
      : [{ level: 'fail', words: `its encoding is ${row.encoding}`, cure: 'Create the database with encoding UTF8.' }];
  return [version, ...encoding, await lookAtMigrations(db), await lookAtNotices(db)];
}

async function lookAtMigrations(db: Database): Promise<Finding> {
  const own = await readMigrations();
  const [{ exists } = { exists: false }] = await db<{ exists: boolean }[]>`
    select to_regclass('schema_migrations') is not null as exists`;
  const applied = exists
    ? await db<AppliedMigration[]>`select version, name, checksum from schema_migrations order by version`
    : [];
  const mismatch = findMismatch(applied, own);
  if (mismatch !== undefined)
    return { level: 'fail', words: mismatch, cure: 'Use the release that made it, or a newer one.' };
  if (applied.length === own.length) return { level: 'ok', words: `all ${own.length} migrations are applied` };
  return {
    level: 'warn',
    words: `${own.length - applied.length} of ${own.length} migrations are not applied`,
    cure: 'The next `quarry serve` applies them, or `quarry migrate` now.',
  };
}

/** Whether a notification arrives, which a transaction pooler would swallow. */
async function lookAtNotices(db: Database): Promise<Finding> {
  const arrived = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => arrived.resolve(false), noticeTimeoutMs);
  const subscription = await db.listen('quarry_doctor', () => arrived.resolve(true));
  await db.notify('quarry_doctor', '');
  const heard = await arrived.promise;
  clearTimeout(timer);
  await subscription.unlisten();
  if (heard) return { level: 'ok', words: 'notifications arrive' };
  const cure = 'DATABASE_URL seems to name a transaction pooler: set DATABASE_DIRECT_URL to the database itself.';
  return { level: 'fail', words: 'notifications do not arrive', cure };
}

async function lookAtClock(db: Database): Promise<Finding> {
  const before = systemClock.now().getTime();
  const [row] = await db<{ now: Date }[]>`select clock_timestamp() as now`;
  const after = systemClock.now().getTime();
  if (!row) throw new Error('The database does not tell the time.');
  const difference = Math.round(row.now.getTime() - (before + after) / 2);
  const words = `the database's is ${Math.abs(difference)} ms ${difference < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (Math.abs(difference) <= clockWarnMs) return { level: 'ok', words };
  return { level: 'warn', words, cure: 'Tokens and schedules would be off: run NTP on both machines.' };
}

async function lookAtSecret(db: Database, config: Config): Promise<Finding> {
  const root = config.secret ?? findSecret(config.dataDir);
  const [{ exists } = { exists: false }] = await db<{ exists: boolean }[]>`
    select to_regclass('apps') is not null as exists`;
  const [app] = exists ? await db<{ key: Buffer }[]>`select capability_key as key from apps order by id limit 1` : [];
  if (!app) return { level: 'ok', words: 'nothing is stored under it yet' };
  const cure = 'Set QUARRY_SECRET to the secret that this database was made with, or restore the file "secret".';
  if (root === undefined) return { level: 'fail', words: 'there is none, but the database was made with one', cure };
  try {
    const { stale } = new Secrets(root, config.secretPrevious).unwrap(app.key);
    if (!stale) return { level: 'ok', words: 'opens what is stored' };
    return { level: 'ok', words: 'the previous one opens what is stored; the next `quarry serve` wraps it anew' };
  } catch {
    return { level: 'fail', words: 'does not open what is stored', cure };
  }
}

async function lookAtJobs(db: Database): Promise<Finding> {
  const [{ exists } = { exists: false }] = await db<{ exists: boolean }[]>`
    select to_regclass('graphile_worker.jobs') is not null as exists`;
  if (!exists) return { level: 'ok', words: 'none yet' };
  const [row] = await db<{ waiting: number; givenUp: number }[]>`
    select count(*) filter (where attempts < max_attempts) as waiting,
      count(*) filter (where attempts >= max_attempts and locked_at is null) as given_up
    from graphile_worker.jobs`;
  const { waiting, givenUp } = row ?? { waiting: 0, givenUp: 0 };
  const words = `${waiting} waiting or running, ${givenUp} set aside`;
  if (givenUp === 0) return { level: 'ok', words };
  return { level: 'warn', words, cure: '`quarry jobs` tells why, and `quarry jobs retry` has one tried again.' };
}

/** The first line alone: a stack says nothing to whoever asks the doctor. */
function explainBriefly(error: unknown): string {
  return explain(error).split('\n', 1)[0] ?? 'failed';
}
