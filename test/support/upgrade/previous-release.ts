import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { withDatabase } from '../../../src/db/address.ts';
import { type Database, openDatabase } from '../../../src/db/database.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { administrate, serverOfRun, templateVariable } from '../database.ts';
import type { TestServer } from '../server.ts';
import { projectRoot, readProjectFile } from '../source.ts';

/*
 * The code of the newest release, with its tests, as `npm run release:record` has kept it. It runs with the packages
 * that this release has installed.
 */
const { version: project, released } = JSON.parse(readProjectFile('migrations/release.json')) as {
  version: string;
  released: boolean;
};

type PreviousRelease = {
  version: string;
  /** The folder with its `src` and `test`. */
  root: string;
  /** Starts its whole server in this process, on a new database with its own schema. */
  startServer(options?: { env?: Record<string, string> }): Promise<TestServer>;
  /**
   * Runs files of its API tests, without those of these names, until the signal ends them. Their databases have the
   * schema of this release.
   */
  runTests(files: string[], without: string[], signal: AbortSignal): Promise<{ code: number | null; output: string }>;
  /** Removes its template databases. */
  close(): Promise<void>;
};

export async function openPreviousRelease(): Promise<PreviousRelease> {
  if (!released) throw new Error(`${project} is not released. Keep the source of the release before it.`);
  const root = unpack(project);
  const server = serverOfRun();
  const [own, expanded] = [`quarry_previous_${process.pid}`, `quarry_expanded_${process.pid}`];
  const create = async (name: string, template: string, work: (db: Database) => Promise<void>) => {
    await administrate(server, (sql) => sql`create database ${sql(name)} template ${sql(template)} strategy file_copy`);
    const target = withDatabase(server, name);
    const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test' });
    await work(db).finally(() => db.end());
  };
  await create(own, 'template1', (db) => migrateAsPrevious(root, db));
  await create(expanded, own, async (db) => {
    await migrate(db);
  });
  return {
    version: project,
    root,
    async startServer(options) {
      process.env[templateVariable] = own;
      const { startTestServer } = await import(join(root, 'test/support/server.ts'));
      return startTestServer(options);
    },
    runTests: (files, without, signal) => runTests(root, files, without, expanded, signal),
    async close() {
      delete process.env[templateVariable];
      for (const name of [own, expanded])
        await administrate(server, (sql) => sql`drop database if exists ${sql(name)} with (force)`);
    },
  };
}

/** Below the project, where its imports find the installed packages. */
function unpack(version: string): string {
  const archive = readFileSync(join(projectRoot, 'test/fixtures/releases', version, 'source.tar.br'));
  const digest = createHash('sha256').update(archive).update(String(adapt)).digest('hex').slice(0, 16);
  const root = join(projectRoot, 'test/output/releases', `${version}-${digest}`);
  if (existsSync(root)) return root;
  const partial = `${root}.${process.pid}`;
  mkdirSync(partial, { recursive: true });
  extract(brotliDecompressSync(archive), partial);
  if (version === '0.1.0') adapt(partial);
  if (existsSync(root)) rmSync(partial, { recursive: true });
  else renameSync(partial, root);
  return root;
}

/** Writes the files of a tar archive that `git archive` has created: plain names, no links. */
function extract(archive: Buffer, into: string): void {
  const text = (from: number, length: number) => archive.toString('latin1', from, from + length).replace(/\0.*$/s, '');
  for (let at = 0; archive[at] !== 0; ) {
    const name = [text(at + 345, 155), text(at, 100)].filter((part) => part !== '').join('/');
    const size = Number.parseInt(text(at + 124, 12), 8);
    const type = text(at + 156, 1);
    if (name.split('/').includes('..')) throw new Error(`The archive has the name ${name}.`);
    if (type === '5') mkdirSync(join(into, name), { recursive: true });
    if (type === '0' || type === '') writeFileSync(join(into, name), archive.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
}

/**
 * 0.1.0 does not start on a newer schema, and creates the tables of its job library at its start; here it acts as a
 * process that has started before the migration. Its tests do
 * not read the name of their template database from a variable yet.
 */
function adapt(root: string): void {
  const replace = (file: string, from: string, to: string) => {
    const path = join(root, file);
    const source = readFileSync(path, 'utf8');
    if (!source.includes(from)) throw new Error(`${file} does not contain: ${from}`);
    writeFileSync(path, source.replace(from, to));
  };
  replace(
    'src/db/migrate.ts',
    'if (same === undefined) return',
    'if (same === undefined) continue;\n    if (!same) return',
  );
  replace('src/services.ts', '  await migrateJobs(direct, directTarget, log);\n', '');
  replace('test/support/database.ts', "= 'quarry_test_template'", `= process.env.${templateVariable} ?? ''`);
}

async function migrateAsPrevious(root: string, db: Database): Promise<void> {
  const { migrate: migratePrevious } = await import(join(root, 'src/db/migrate.ts'));
  await migratePrevious(db);
  if (!existsSync(join(root, 'src/jobs/migrate.ts'))) return;
  // Its job library is no longer installed.
  const session = await db.reserve();
  await session.runScript(readProjectFile('test/support/upgrade/job-tables-0.1.0.sql'));
  session.release();
}

async function runTests(root: string, files: string[], without: string[], template: string, signal: AbortSignal) {
  const skipped = without.map((name) => `--test-skip-pattern=/^${RegExp.escape(name)}$/`);
  const limits = ['--test-concurrency=2', '--test-timeout=120000'];
  const child = spawn(process.execPath, ['--test', ...limits, ...skipped, ...files], {
    cwd: root,
    env: { ...process.env, [templateVariable]: template, NODE_TEST_CONTEXT: undefined },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += String(chunk);
    });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, output };
}
