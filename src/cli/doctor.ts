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

/** Checks everything that a server needs and prints a line for each check, with a fix for each problem. */
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
  const cure = 'Free up space, or move the data directory to a larger disk and set QUARRY_DATA_DIR.';
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
    if (!read.equals(bytes)) return { level: 'fail', words: `the ${store.kind} store returned different bytes` };
    return { level: 'ok', words: `the ${store.kind} store writes, reads and deletes` };
  } catch (error) {
    const cure =
      store.kind === 's3'
        ? 'Check QUARRY_S3_ENDPOINT, QUARRY_S3_BUCKET, QUARRY_S3_REGION, QUARRY_S3_PATH_STYLE and the credentials.'
        : `Let this user write to ${config.dataDir}/blobs, or set QUARRY_DATA_DIR.`;
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
    return { level: 'fail', words: 'a child process reads documents incorrectly', cure: 'Reinstall with `npm ci`.' };
  } catch (error) {
    const cure = 'Raise QUARRY_PARSE_MEMORY_MB or QUARRY_PARSE_SECONDS, or reinstall with `npm ci`.';
    return { level: 'fail', words: explainBriefly(error), cure };
  } finally {
    await parser.close();
  }
}

/** What isolates parser processes from the system, in addition to Node's permission model. */
function describeConfinement(): Finding[] {
  const { network, userId, readsAll, limits } = findConfinement(ownWorkerFile);
  const isRoot = process.getuid?.() === 0;
  const cure = 'See docs/security.md, "Untrusted bytes", for what each system offers.';
  const networkFinding: Finding = network
    ? { level: 'ok', words: 'parser processes run in their own network namespace, which reaches nothing' }
    : {
        level: 'warn',
        words: 'parser processes have no network isolation: only their network modules are disabled',
        cure,
      };
  const userFinding: Finding =
    userId === undefined
      ? isRoot
        ? { level: 'warn', words: 'parser processes run as root, like the server', cure }
        : { level: 'ok', words: "parser processes run as the server's own user" }
      : readsAll
        ? {
            level: 'ok',
            words: `parser processes run as user ${userId}, with the right to read a program that only root can read`,
          }
        : { level: 'ok', words: `parser processes run as user ${userId}` };
  const limitsFinding: Finding = limits
    ? { level: 'ok', words: 'the system limits the CPU time, memory and file size of parser processes' }
    : {
        level: 'warn',
        words: 'no system limits: only the deadline and the heap limit apply to parser processes',
        cure,
      };
  return [userFinding, networkFinding, limitsFinding];
}

async function lookAtDatabase(db: Database): Promise<Finding[]> {
  const [row] = await db<{ version: string; number: number; encoding: string }[]>`
    select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
      pg_encoding_to_char(encoding) as encoding
    from pg_database where datname = current_database()`;
  if (!row) throw new Error('The database returned no version.');
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
    return { level: 'fail', words: mismatch, cure: 'Use the release that created it, or a newer one.' };
  if (applied.length === own.length) return { level: 'ok', words: `all ${own.length} migrations are applied` };
  return {
    level: 'warn',
    words: `${own.length - applied.length} of ${own.length} migrations are not applied`,
    cure: 'The next `quarry serve` applies them; `quarry migrate` applies them now.',
  };
}

/** Checks that notifications arrive. A transaction pooler drops them. */
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
  if (!row) throw new Error('The database returned no time.');
  const difference = Math.round(row.now.getTime() - (before + after) / 2);
  const words = `the database's is ${Math.abs(difference)} ms ${difference < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (Math.abs(difference) <= clockWarnMs) return { level: 'ok', words };
  return { level: 'warn', words, cure: 'Tokens and schedules depend on the time. Run NTP on both machines.' };
}

async function lookAtSecret(db: Database, config: Config): Promise<Finding> {
  const root = config.secret ?? findSecret(config.dataDir);
  const [{ exists } = { exists: false }] = await db<{ exists: boolean }[]>`
    select to_regclass('apps') is not null as exists`;
  const [app] = exists ? await db<{ key: Buffer }[]>`select capability_key as key from apps order by id limit 1` : [];
  if (!app) return { level: 'ok', words: 'no stored value uses it yet' };
  const cure = 'Set QUARRY_SECRET to the secret that this database was created with, or restore the file "secret".';
  if (root === undefined) return { level: 'fail', words: 'not set, but the database was created with one', cure };
  try {
    const { stale } = new Secrets(root, config.secretPrevious).unwrap(app.key);
    if (!stale) return { level: 'ok', words: 'decrypts the stored values' };
    return {
      level: 'ok',
      words: 'the previous one decrypts the stored values; the next `quarry serve` encrypts them with the current one',
    };
  } catch {
    return { level: 'fail', words: 'does not decrypt the stored values', cure };
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
  return { level: 'warn', words, cure: '`quarry jobs` shows the reason, and `quarry jobs retry` retries a job.' };
}

/** Only the first line: a stack trace does not help the reader here. */
function explainBriefly(error: unknown): string {
  return explain(error).split('\n', 1)[0] ?? 'failed';
}
