import { existsSync, statfsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { openBlobStore } from '../../blob/open.ts';
import { findSecret } from '../../boot/services.ts';
import { readCells } from '../../cells/settings.ts';
import { inspectCells, withCell } from '../../cells/status.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { findConfinement } from '../../content/parse/pool/confinement.ts';
import { findOcrProblem, ocrSettings } from '../../content/parse/pool/ocr-data.ts';
import { ParserPool } from '../../content/parse/pool/pool.ts';
import { ownWorkerFile } from '../../content/parse/pool/process.ts';
import type { Database } from '../../db/database.ts';
import { type AppliedMigration, findMismatch, readMigrations, readServedSchema } from '../../db/migrate.ts';
import { addOnNames } from '../../lib/add-ons.ts';
import { systemClock } from '../../lib/clock.ts';
import { newUuid } from '../../lib/ids.ts';
import { createLogger } from '../../lib/log.ts';
import { describePlan, planProcesses } from '../../supervisor/plan.ts';
import { Secrets } from '../../tenancy/secrets.ts';
import { describeError } from '../explain.ts';
import { stateOf } from './add.ts';
import { checkReplicaUrl } from './doctor-replica.ts';
import {
  type CheckResult,
  checkConnections,
  checkDurability,
  checkGit,
  checkOpenFiles,
  checkPooler,
  checkProxy,
  checkPublicUrl,
  checkRenderer,
  checkReplicas,
  checkTracing,
  checkTransactions,
} from './doctor-surroundings.ts';
import { warnOfUnknownSettings } from './unknown-settings.ts';
import { withDatabase } from './with-database.ts';

type Report = (name: string, finding: CheckResult) => void;

/** Checks everything that a server needs and prints a line for each check, with a fix for each problem. */
export async function run(): Promise<number> {
  let failed = false;
  const report: Report = (name, { level, message, fix }) => {
    failed ||= level === 'fail';
    process.stdout.write(`${level.padEnd(5)} ${name.padEnd(10)} ${message}\n`);
    if (fix !== undefined) process.stdout.write(`${' '.repeat(17)}${fix}\n`);
  };
  const runCheck = async (name: string, look: () => Promise<CheckResult | CheckResult[]>) => {
    try {
      for (const finding of [await look()].flat()) report(name, finding);
    } catch (error) {
      report(name, { level: 'fail', message: describeError(error) });
    }
  };

  let config: Config | undefined;
  await runCheck('settings', async () => {
    config = readConfig();
    const unknown = warnOfUnknownSettings().map(({ name, warning }) => ({
      level: 'warn' as const,
      message: `${name}: ${warning}`,
    }));
    return [{ level: 'ok', message: 'all valid; `quarry config` shows them' }, ...unknown];
  });
  if (config === undefined) return 1;
  const settings = config;
  report('processes', describeProcesses(settings));
  await runCheck('disk', async () => checkDisk(settings));
  await runCheck('files', async () => checkOpenFiles());
  report('add-ons', describeAddOns(settings));
  await runCheck('blobs', () => checkBlobs(settings));
  await runCheck('parsers', () => checkParsers(settings));
  await runCheck('renderer', () => checkRenderer(settings));
  await runCheck('git', checkGit);
  await runCheck('public URL', () => checkPublicUrl(settings));
  await runCheck('proxy', async () => checkProxy(settings));
  await runCheck('tracing', () => checkTracing(settings));
  await runCheck('pooler', () => checkPooler(settings));
  await runCheck('database', () =>
    withDatabase(settings, createLogger('fatal'), async (db): Promise<CheckResult[]> => {
      for (const finding of await checkDatabase(db)) report('database', finding);
      await runCheck('database', () => checkConnections(db, settings));
      await runCheck('replicas', () => checkReplicas(db));
      await runCheck('replica', () => checkReplicaUrl(db, settings));
      await runCheck('clock', () => checkClock(db));
      await runCheck('secret', () => checkSecret(db, settings));
      await runCheck('jobs', () => checkJobs(db));
      await runCheck('cells', () => checkCells(db, settings));
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

function describeProcesses(config: Config): CheckResult {
  const cores = availableParallelism();
  const message = `\`quarry serve\` starts ${describePlan(planProcesses(config))}; cores: ${cores}, QUARRY_PROCESSES: ${config.processes}`;
  return { level: 'ok', message };
}

function describeAddOns({ dataDir }: Config): CheckResult {
  return { level: 'ok', message: addOnNames.map((name) => `${name}: ${stateOf(name, dataDir)}`).join('; ') };
}

function checkDisk({ dataDir }: Config): CheckResult {
  let directory = dataDir;
  while (!existsSync(directory)) directory = dirname(directory);
  const { bavail, bsize } = statfsSync(directory);
  const free = bavail * bsize;
  const message = `${(free / gibibyte).toFixed(1)} GiB free below ${directory}`;
  if (free >= freeWarnBytes) return { level: 'ok', message };
  const fix = 'Free up space, or move the data directory to a larger disk and set QUARRY_DATA_DIR.';
  return { level: free < freeFailBytes ? 'fail' : 'warn', message, fix };
}

async function checkBlobs(config: Config): Promise<CheckResult> {
  const store = await openBlobStore(config);
  const key = `${newUuid()}/${newUuid()}`;
  const bytes = Buffer.from('quarry doctor');
  try {
    await store.put(key, bytes, { contentType: 'text/plain' });
    const read = Buffer.from(await store.readAll(key, bytes.length));
    await store.remove(key);
    if (!read.equals(bytes)) return { level: 'fail', message: `the ${store.kind} store returned different bytes` };
    return { level: 'ok', message: `the ${store.kind} store writes, reads and deletes` };
  } catch (error) {
    const fix =
      store.kind === 's3'
        ? 'Check QUARRY_S3_ENDPOINT, QUARRY_S3_BUCKET, QUARRY_S3_REGION, QUARRY_S3_PATH_STYLE and the credentials.'
        : `Let this user write to ${config.dataDir}/blobs, or set QUARRY_DATA_DIR.`;
    return { level: 'fail', message: firstLineOf(error), fix };
  } finally {
    await store.close();
  }
}

async function checkParsers(config: Config): Promise<CheckResult | CheckResult[]> {
  const parser = new ParserPool({
    workers: 1,
    memoryMb: config.parseMemoryMb,
    deadlineMs: config.parseSeconds * 1000,
    ocr: ocrSettings(config),
    log: createLogger('fatal'),
  });
  try {
    const bytes = Buffer.from('<h1>Quarry</h1><p>doctor</p>');
    const { markdown } = await parser.parse({ bytes, filename: 'doctor.html', contentType: 'text/html' });
    if (/^# Quarry\s+doctor\s*$/.test(markdown))
      return [
        { level: 'ok', message: 'a child process reads documents' },
        ...describeConfinement(config),
        describeOcr(config),
      ];
    return { level: 'fail', message: 'a child process reads documents incorrectly', fix: 'Reinstall with `npm ci`.' };
  } catch (error) {
    const fix = 'Raise QUARRY_PARSE_MEMORY_MB or QUARRY_PARSE_SECONDS, or reinstall with `npm ci`.';
    return { level: 'fail', message: firstLineOf(error), fix };
  } finally {
    await parser.close();
  }
}

function describeOcr(config: Config): CheckResult {
  const settings = ocrSettings(config);
  const problem = findOcrProblem(settings);
  if (problem === undefined)
    return { level: 'ok', message: `scans and pictures are read: ${settings.languages.join(', ')}` };
  return { level: 'warn', message: `scans and pictures are not read: ${problem.reason}`, fix: `${problem.fix}.` };
}

/** Reports how parser processes are isolated from the system, in addition to Node's permission model. */
function describeConfinement(config: Config): CheckResult[] {
  const { network, userId, readsAll, limits } = findConfinement(ownWorkerFile);
  const isRoot = process.getuid?.() === 0;
  const fix = 'See docs/security.md, "Untrusted bytes", for what each system offers.';
  const networkFinding: CheckResult = network
    ? { level: 'ok', message: 'parser processes run in their own network namespace, which reaches nothing' }
    : config.parseNetwork === 'isolated'
      ? {
          level: 'fail',
          message: 'documents are not read: the system gives parser processes no network of their own',
          fix: 'Allow user namespaces, or set QUARRY_PARSE_NETWORK=shared. See docs/security.md, "Untrusted bytes".',
        }
      : {
          level: 'warn',
          message: 'parser processes have no network isolation: only their network modules are disabled',
          fix,
        };
  const userFinding: CheckResult =
    userId === undefined
      ? isRoot
        ? { level: 'warn', message: 'parser processes run as root, like the server', fix }
        : { level: 'ok', message: "parser processes run as the server's own user" }
      : readsAll
        ? {
            level: 'ok',
            message: `parser processes run as user ${userId}, with the right to read a program that only root can read`,
          }
        : { level: 'ok', message: `parser processes run as user ${userId}` };
  const limitsFinding: CheckResult = limits
    ? { level: 'ok', message: 'the system limits the CPU time, memory and file size of parser processes' }
    : {
        level: 'warn',
        message: 'no system limits: only the deadline and the heap limit apply to parser processes',
        fix,
      };
  return [userFinding, networkFinding, limitsFinding];
}

async function checkDatabase(db: Database): Promise<CheckResult[]> {
  const [row] = await db<{ version: string; number: number; encoding: string }[]>`
    select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
      pg_encoding_to_char(encoding) as encoding
    from pg_database where datname = current_database()`;
  if (!row) throw new Error('The database returned no version.');
  const version: CheckResult =
    row.number < serverVersionMin
      ? { level: 'fail', message: `PostgreSQL ${row.version}`, fix: 'Use PostgreSQL 15 or newer.' }
      : { level: 'ok', message: `PostgreSQL ${row.version}` };
  const encoding: CheckResult[] =
    row.encoding === 'UTF8'
      ? []
      : [{ level: 'fail', message: `its encoding is ${row.encoding}`, fix: 'Create the database with encoding UTF8.' }];
  const schema = [await checkMigrations(db), await checkNotifications(db)];
  return [version, ...encoding, ...schema, await checkDurability(db), ...(await checkTransactions(db))];
}

async function checkMigrations(db: Database): Promise<CheckResult> {
  const own = await readMigrations();
  const [{ exists } = { exists: false }] = await db<{ exists: boolean }[]>`
    select to_regclass('schema_migrations') is not null as exists`;
  const applied = exists
    ? await db<AppliedMigration[]>`select version, name, checksum from schema_migrations order by version`
    : [];
  const servesFrom = exists ? await readServedSchema(db) : undefined;
  const mismatch = findMismatch(applied, own, servesFrom);
  if (mismatch !== undefined)
    return { level: 'fail', message: mismatch, fix: 'Use the release that created it, or a newer one.' };
  if (applied.length > own.length)
    return {
      level: 'warn',
      message: `a newer release has migrated the database (${applied.at(-1)?.name}); this one still serves it`,
      fix: 'Finish the upgrade: replace the remaining processes of this release.',
    };
  if (applied.length === own.length) return { level: 'ok', message: `all ${own.length} migrations are applied` };
  return {
    level: 'warn',
    message: `${applied.length} of ${own.length} migrations are applied`,
    fix: 'The next `quarry serve` applies them; `quarry migrate` applies them now.',
  };
}

/** Checks that notifications arrive. A transaction pooler drops them. */
async function checkNotifications(db: Database): Promise<CheckResult> {
  const arrived = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => arrived.resolve(false), noticeTimeoutMs);
  const subscription = await db.listen('quarry_doctor', () => arrived.resolve(true));
  await db.notify('quarry_doctor', '');
  const heard = await arrived.promise;
  clearTimeout(timer);
  await subscription.unlisten();
  if (heard) return { level: 'ok', message: 'notifications arrive' };
  const fix = 'DATABASE_URL seems to name a transaction pooler: set DATABASE_DIRECT_URL to the database itself.';
  return { level: 'fail', message: 'notifications do not arrive', fix };
}

async function checkClock(db: Database): Promise<CheckResult> {
  const before = systemClock.now().getTime();
  const [row] = await db<{ now: Date }[]>`select clock_timestamp() as now`;
  const after = systemClock.now().getTime();
  if (!row) throw new Error('The database returned no time.');
  const difference = Math.round(row.now.getTime() - (before + after) / 2);
  const message = `the database's is ${Math.abs(difference)} ms ${difference < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (Math.abs(difference) <= clockWarnMs) return { level: 'ok', message };
  return { level: 'warn', message, fix: 'Tokens and schedules depend on the time. Run NTP on both machines.' };
}

async function checkSecret(db: Database, config: Config): Promise<CheckResult> {
  const root = config.secret ?? findSecret(config.dataDir);
  const [{ exists } = { exists: false }] = await db<{ exists: boolean }[]>`
    select to_regclass('apps') is not null as exists`;
  const [app] = exists ? await db<{ key: Buffer }[]>`select capability_key as key from apps order by id limit 1` : [];
  if (!app) return { level: 'ok', message: 'no stored value uses it yet' };
  const fix = 'Set QUARRY_SECRET to the secret that this database was created with, or restore the file "secret".';
  if (root === undefined) return { level: 'fail', message: 'not set, but the database was created with one', fix };
  try {
    const { stale } = new Secrets(root, config.secretPrevious).unwrap(app.key);
    if (!stale) return { level: 'ok', message: 'decrypts the stored values' };
    return {
      level: 'ok',
      message:
        'the previous one decrypts the stored values; the next `quarry serve` encrypts them with the current one',
    };
  } catch {
    return { level: 'fail', message: 'does not decrypt the stored values', fix };
  }
}

/** Every cell: whether servers can use it, and what is checked of every database. */
async function checkCells(directory: Database, config: Config): Promise<CheckResult[]> {
  const cells = readCells(config);
  if (cells === undefined) return [];
  const [{ exists } = { exists: false }] = await directory<{ exists: boolean }[]>`
    select to_regclass('cell_identity') is not null as exists`;
  const statuses = exists ? await inspectCells(directory, cells) : [];
  const findings: CheckResult[] = [];
  for (const cell of cells) {
    const { name } = cell;
    const { problem } = statuses.find((each) => each.name === name) ?? {};
    if (problem !== undefined) {
      const fix = '`quarry cells list` shows every cell; docs/scaling.md#cells says what each needs.';
      findings.push({ level: 'fail', message: `${name}: ${problem}`, fix });
      continue;
    }
    const found = await withCell(cell, directory, async (db) => [
      ...(await checkDatabase(db)),
      await checkConnections(db, config),
      await checkClock(db),
      await checkSecret(db, config),
      await checkJobs(db),
    ]);
    findings.push(...found.flat().map((finding) => ({ ...finding, message: `${name}: ${finding.message}` })));
  }
  return findings;
}

async function checkJobs(db: Database): Promise<CheckResult> {
  const [{ exists } = { exists: false }] = await db<{ exists: boolean }[]>`
    select to_regclass('jobs') is not null as exists`;
  if (!exists) return { level: 'ok', message: 'none yet' };
  const [row] = await db<{ waiting: number; givenUp: number }[]>`
    select count(*) filter (where attempts < max_attempts) as waiting,
      count(*) filter (where attempts >= max_attempts and locked_at is null) as given_up
    from jobs`;
  const { waiting, givenUp } = row ?? { waiting: 0, givenUp: 0 };
  const message = `${waiting} waiting or running, ${givenUp} set aside`;
  if (givenUp === 0) return { level: 'ok', message };
  return { level: 'warn', message, fix: '`quarry jobs` shows the reason, and `quarry jobs retry` retries a job.' };
}

/** Only the first line: a stack trace does not help the reader here. */
function firstLineOf(error: unknown): string {
  return describeError(error).split('\n', 1)[0] ?? 'failed';
}
