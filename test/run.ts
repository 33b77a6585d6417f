import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DatabaseTarget, withDatabase } from '../src/db/address.ts';
import { openDatabase } from '../src/db/database.ts';
import { lockDirectory } from '../src/db/directory-lock.ts';
import { type EmbeddedPostgres, findCluster, startEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { partitionTables } from '../src/db/partition.ts';
import { stopOrphan } from '../src/db/postmaster.ts';
import { createLogger } from '../src/lib/log.ts';
import { writeBatch, writeSingle } from './support/batch-program.ts';
import { fillParserCache } from './support/cached-parsers.ts';
import { testsCells } from './support/cells-of-process.ts';
import { clusterVariable, copyClusterOf } from './support/cluster.ts';
import { administrate, runVariable, templateDatabase } from './support/database.ts';
import { stopPostgresWithThisProcess } from './support/left-behind.ts';
import { poolerVariable, startPooler } from './support/pooler.ts';

/*
 * What `npm test` runs: one PostgreSQL and one migrated template database for all test files, then node's own runner.
 *
 *   node test/run.ts                                     everything
 *   node test/run.ts test/api/kv/kv.test.ts              one file, or a directory
 *   node test/run.ts test/api --test-name-pattern=quota  options go to `node --test`
 *
 * QUARRY_TEST_POOLER=1 has the test servers reach the database through PgBouncer in transaction mode.
 * QUARRY_TEST_PARTITIONS=4 splits the large tables into so many partitions by app.
 * TEST_DATABASE_URL names a server to use instead; its user must be allowed to create databases.
 */
const suites = ['test/rules', 'test/unit', 'test/api', 'test/cli', 'test/browser', 'test/crash', 'test/fuzz'];
/** Of these, so many files share a process. Those that take longest come first, so that no core waits for the last one. */
const batchedSuites = ['test/browser', 'test/api', 'test/cli', 'test/unit', 'test/rules'];
const batchSize = 16;
/** They change or look at their whole process, or need little of it. */
const alone = new Set([
  'test/api/db/previous-release.test.ts',
  'test/api/http/tracing.test.ts',
  'test/browser/renderer-fuzz.test.ts',
  'test/browser/renderer-guard.test.ts',
  'test/cli/agent-tools-package.test.ts',
  'test/cli/package.test.ts',
]);
/** Of the files that run by themselves, those that take longest, in order: they start first. */
const longest = [
  ...['test/crash/cells-alone.test.ts', 'test/crash/supervisor.test.ts', 'test/api/db/previous-release.test.ts'],
  ...['test/fuzz/api.test.ts', 'test/crash/mixed.test.ts', 'test/crash/lifecycle.test.ts', 'test/crash/syncs.test.ts'],
];
/**
 * They look at the one database of a server, or at metrics without the label of a cell, or start cells themselves, so
 * they do not run with two cells. Servers that start their own database have no cells in any test: what becomes of it,
 * and what such a server takes, is tested without them.
 */
const withoutCells = [
  ...['test/api/cells/', 'test/api/db/', 'test/api/automations/fair-shares.test.ts'],
  ...['test/api/monitoring/metrics.test.ts', 'test/api/tenancy/bootstrap.test.ts'],
  ...['test/crash/cells-', 'test/crash/move.test.ts', 'test/crash/move-steps.test.ts'],
  ...['backup', 'embedded', 'full-cluster', 'idle', 'lifecycle'].map((name) => `test/crash/${name}.test.ts`),
];
/** They start embedded databases. */
const serving = ['test/crash', 'test/cli'];
/** Six times what the longest test, the authorization matrix, takes on a busy machine of two cores. */
const testTimeoutMs = 900_000;
/** The database is thrown away, so it need not survive a power cut. Crash tests start their own, durable one. */
const fastSettings = {
  ...{ fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off', max_connections: '400' },
  // Nothing lives long enough to be vacuumed, archived or replicated, and reads come from memory.
  ...{ autovacuum: 'off', wal_level: 'minimal', max_wal_senders: '0', io_method: 'sync' },
};
const maintenanceDatabase = 'postgres';
const temporaryPrefix = 'quarry-test-';
/**
 * The memory that must be available for the database and the files of a run to be kept in it. They take less than half
 * of this.
 */
const memoryBytesMin = 4 * 1024 ** 3;
/** A file system in memory. In a container it may be tiny, and macOS has none. */
const sharedMemory = '/dev/shm';
const abandonedAgeMs = 24 * 60 * 60 * 1000;
/** Longer than a run takes to make its directories. */
const youngMs = 2 * 60 * 1000;

/**
 * A process of tests takes a tenth less processor time if its heap starts large, and less again without the threads that
 * help to collect garbage: every core is busy with other tests.
 */
const garbageOptions = [
  ...['--min-semi-space-size=16', '--max-semi-space-size=32', '--initial-old-space-size=512', '--no-memory-reducer'],
  '--single-threaded-gc',
];

const root = join(fileURLToPath(import.meta.url), '..', '..');
/** Saves each test file and each process that it starts half a second of compiling. */
const compileCache = join(root, 'node_modules', '.cache', 'quarry-tests');
const log = createLogger('error');
process.chdir(root);
process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const files = selectFiles(args.filter((arg) => !arg.startsWith('-')));
  const options = args.filter((arg) => arg.startsWith('-'));
  // Only the runner receives the signal; this process waits for it and then cleans up.
  let interrupted = false;
  let forward = (_signal: NodeJS.Signals): void => {};
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      interrupted = true;
      forward(signal);
    });

  // A browser would test the console of an earlier build.
  if (files.some((file) => file.startsWith('test/browser/')))
    execFileSync(process.execPath, ['scripts/prepare.js'], { stdio: 'inherit' });
  await removeLeftovers();
  const external = process.env.TEST_DATABASE_URL;
  const place = placeOfFiles();
  const dataDir = mkdtempSync(join(place, temporaryPrefix));
  if (!external) stopPostgresWithThisProcess(dataDir);
  const temporary = join(dataDir, 'files');
  mkdirSync(temporary);
  // Tests also start processes as other users.
  chmodSync(dataDir, 0o711);
  chmodSync(temporary, 0o1777);
  let embedded: EmbeddedPostgres | undefined;
  let pooler: Awaited<ReturnType<typeof startPooler>> | undefined;
  try {
    // Without the cache, the tests only take longer; what keeps a parser from starting fails those that need one.
    const filled = fillParserCache().catch(() => {});
    const start = () => startEmbeddedPostgres({ dataDir, log, settings: fastSettings });
    const cluster = join(dataDir, 'new-cluster');
    const needsCluster = !external && files.some((file) => serving.some((suite) => file.startsWith(`${suite}/`)));
    if (!external) embedded = await start();
    if (embedded && needsCluster) {
      await migrateAll(embedded.address);
      await embedded.stop();
      copyClusterOf(dataDir, cluster);
      embedded = await start();
    }
    const target = external || embedded?.address;
    if (target === undefined) throw new Error('There is no database to test on.');
    await createTemplate(target, needsCluster ? maintenanceDatabase : 'template1');
    await filled;
    if (process.env.QUARRY_TEST_POOLER) pooler = await startPooler(target);
    if (interrupted) return 130;
    const pooled = pooler === undefined ? {} : { [poolerVariable]: String(pooler.port) };
    const copied = needsCluster ? { [clusterVariable]: cluster } : {};
    const env = { NODE_COMPILE_CACHE: compileCache, ...process.env, ...pooled, ...copied, TMPDIR: temporary };
    // A pattern for names of tests does not match those of their files.
    const programs = options.length > 0 ? writePrograms(files, dataDir) : writeBatches(files, dataDir);
    const child = spawn(process.execPath, [...garbageOptions, ...testArguments(programs, options)], {
      stdio: 'inherit',
      env: { ...env, [runVariable]: JSON.stringify(target) },
    });
    forward = (signal) => child.kill(signal);
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (exitCode) => resolve(exitCode ?? 1));
    });
    return interrupted ? 130 : code;
  } finally {
    await pooler?.close();
    await embedded?.stop();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function testArguments(files: string[], options: string[]): string[] {
  // A test that waits for a timeout, a start or the database leaves its core to others. With more files at a time, parsers
  // and expressions, which run in the background, get too little of the processors to keep their deadlines.
  const concurrency = Math.min(8, availableParallelism() + 1);
  return ['--test', `--test-concurrency=${concurrency}`, `--test-timeout=${testTimeoutMs}`, ...options, ...files];
}

/**
 * Programs that run several of the files each: to load the server's modules and start parsers once for all of them saves
 * a third of the processor time of short files. The other files have one each.
 */
function writeBatches(files: string[], directory: string): string[] {
  const isBatched = (file: string) => batchedSuites.some((suite) => file.startsWith(`${suite}/`)) && !alone.has(file);
  const batched = batchedSuites.flatMap((suite) =>
    files.filter((file) => file.startsWith(`${suite}/`) && isBatched(file)),
  );
  const batches: string[][] = [];
  for (let at = 0; at < batched.length; at += batchSize) batches.push(batched.slice(at, at + batchSize));
  const single = files.filter((file) => !isBatched(file));
  const first = longest.filter((file) => single.includes(file));
  return writePrograms(mix(batches, [...new Set([...first, ...single])]), directory);
}

/**
 * Files that run by themselves are mostly crash tests, which wait for starts, leases and deadlines. Between batches, which
 * wait for little, they leave no core idle.
 */
function mix(batches: string[][], single: string[]): (string[] | string)[] {
  const mixed: (string[] | string)[] = [];
  for (const [at, batch] of batches.entries()) {
    const until = Math.ceil((single.length * (at + 1)) / batches.length);
    mixed.push(batch, ...single.slice(Math.ceil((single.length * at) / batches.length), until));
  }
  return batches.length === 0 ? single : mixed;
}

/** Writes a program for each batch and each single file. Node's runner takes them in the order of their names. */
function writePrograms(parts: (string[] | string)[], directory: string): string[] {
  return parts.map((part, at) => {
    const what = typeof part === 'string' ? part.replaceAll('/', '-').replace(/\.test\.ts$/, '') : 'batch';
    const program = join(directory, `${String(at + 1).padStart(3, '0')}-${what}.test.mjs`);
    if (typeof part === 'string') writeSingle(program, part);
    else writeBatch(program, part);
    return program;
  });
}

function selectFiles(selected: string[]): string[] {
  const files = (selected.length > 0 ? selected : suites.filter((suite) => existsSync(suite))).flatMap((path) => {
    if (!existsSync(path)) throw new Error(`There is no test ${path}.`);
    return statSync(path).isDirectory() ? testFilesIn(path) : [relative(root, realpathSync(path))];
  });
  const chosen = testsCells ? files.filter((file) => !withoutCells.some((part) => file.startsWith(part))) : files;
  if (chosen.length === 0) throw new Error('There are no test files there.');
  return chosen;
}

function testFilesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .sort()
    .map((name) => join(directory, name));
}

/** @param from a database of the server, which may have been migrated. */
async function createTemplate(target: DatabaseTarget, from: string): Promise<void> {
  await administrate(target, async (sql) => {
    await sql`drop database if exists ${sql(templateDatabase)} with (force)`;
    await sql`create database ${sql(templateDatabase)} template ${sql(from)}`;
  });
  const partitions = Number(process.env.QUARRY_TEST_PARTITIONS ?? 0);
  await migrateAll(withDatabase(target, templateDatabase), partitions);
}

async function migrateAll(target: DatabaseTarget, partitions = 0): Promise<void> {
  const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test' });
  try {
    await migrate(db);
    if (partitions > 0) await partitionTables(db, partitions);
  } finally {
    // A database with a connection cannot be copied.
    await db.end({ timeout: 5 });
  }
}

/**
 * The place of the run's database and of the temporary files of tests. A database has a thousand files. To create and
 * remove them on a disk takes more processor time than in memory.
 */
function placeOfFiles(): string {
  const { bavail, bsize } = existsSync(sharedMemory) ? statfsSync(sharedMemory) : { bavail: 0, bsize: 0 };
  const isLarge = Math.min(bavail * bsize, process.availableMemory()) >= memoryBytesMin;
  return isLarge && !forbidsPrograms(sharedMemory) ? sharedMemory : realpathSync(tmpdir());
}

/** Whether a file system is mounted so that no program in it can be started, which some tests do. */
function forbidsPrograms(directory: string): boolean {
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[1] === directory);
  return mount?.split(' ')[3]?.split(',').includes('noexec') ?? false;
}

/** Cleans up after runs that were killed: their databases still run and use memory. */
async function removeLeftovers(): Promise<void> {
  const places = [realpathSync(tmpdir()), sharedMemory].filter((place) => existsSync(place));
  const directories = places.flatMap((place) =>
    readdirSync(place)
      .filter((name) => name.startsWith(temporaryPrefix))
      .map((name) => join(place, name)),
  );
  for (const directory of directories) {
    try {
      const ageMs = Date.now() - statSync(directory).mtimeMs;
      // Another run may be making it, and takes its lock only for parts of that.
      if (ageMs < youngMs) continue;
      // Without a lock file it belongs to another run's test server, which takes no lock.
      if (ageMs < abandonedAgeMs && !existsSync(join(directory, 'server.lock'))) continue;
      const lock = lockDirectory(directory);
      await stopOrphan(findCluster(directory), log);
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
      lock.release();
    } catch {
      // Another active run, or another user's.
    }
  }
}
