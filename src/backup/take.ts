import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { to as copyTo } from 'pg-copy-streams';
import type { BlobStore } from '../blob/blob-store.ts';
import type { DatabaseTarget } from '../db/address.ts';
import { findMismatch, readMigrations } from '../db/migrate.ts';
import type { Clock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { createDirectories } from '../lib/directories.ts';
import { newUuid } from '../lib/ids.ts';
import { syncDirectory } from '../lib/sync-directory.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { type Archive, openDirectory } from './archive.ts';
import { copyBlobs } from './blobs.ts';
import { type BackupBucket, openBucketArchive, pruneBackups, stampOf } from './bucket.ts';
import { BackupError } from './error.ts';
import {
  formatManifest,
  type Manifest,
  manifestName,
  manifestSumName,
  type Part,
  type RowsEntry,
  secretProofText,
} from './manifest.ts';
import { PartWriter, readBlobList, writePart } from './parts.ts';
import { megabytes, type Progress } from './progress.ts';
import * as store from './store.ts';

export type BackupDeps = {
  /** A direct connection, for the lock that prevents the removal of blobs. */
  target: DatabaseTarget;
  blobs: BlobStore;
  secrets: Secrets;
  clock: Clock;
  /** This release. */
  version: string;
  progress: Progress;
};

/**
 * Writes a consistent backup into a new directory while servers keep running. The rows are those of one snapshot; a blob
 * that they refer to is kept until it is copied, even if its row is deleted. The directory gets its name only when
 * everything in it is complete and durable.
 * @param secret the root secret, to be put into the backup.
 * @throws BackupError when it cannot be taken; then the directory does not exist.
 */
export async function takeBackup(deps: BackupDeps, directory: string, secret?: string): Promise<Manifest> {
  const target = resolve(directory);
  await requireFree(target);
  const unfinished = `${target}.unfinished`;
  const session = await store.openSession(deps.target);
  try {
    await lock(session);
    // Remove what a killed backup left behind. No backup is writing there: a database has one at a time.
    await rm(unfinished, { recursive: true, force: true });
    createDirectories(unfinished, 0o700);
    const manifest = await write(deps, session, openDirectory(unfinished), secret);
    await rename(unfinished, target);
    await syncDirectory(dirname(target));
    return manifest;
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  } finally {
    await session.end().catch(() => {});
  }
}

/**
 * Writes an encrypted backup into a bucket, named after the time. Blobs that an earlier backup wrote are not copied again.
 * @param options.keep the number of backups that stay; older ones are removed.
 */
export async function takeBackupToBucket(
  deps: BackupDeps,
  bucket: BackupBucket,
  options: { keep: number | undefined; secret: string | undefined },
): Promise<{ manifest: Manifest; name: string; removed: number }> {
  const session = await store.openSession(deps.target);
  try {
    await lock(session);
    const archive = openBucketArchive(bucket, stampOf(deps.clock.now()));
    const manifest = await write(deps, session, archive, options.secret);
    // The lock is needed because the blobs of a backup in progress belong to no complete backup yet.
    const removed =
      options.keep === undefined ? 0 : await whileLocked(session, () => pruneBackups(bucket, options.keep ?? 1));
    return { manifest, name: archive.name, removed };
  } finally {
    await session.end().catch(() => {});
  }
}

async function lock(session: store.Session): Promise<void> {
  if (!(await store.takeBackupLock(session)))
    throw new BackupError('Another backup of this database is running. Wait until it ends.');
}

/** Runs work under the lock of backups. Returns 0 without it when another backup has started: that one prunes later. */
async function whileLocked(session: store.Session, work: () => Promise<number>): Promise<number> {
  return (await store.takeBackupLock(session)) ? work() : 0;
}

async function write(
  deps: BackupDeps,
  session: store.Session,
  archive: Archive,
  secret: string | undefined,
): Promise<Manifest> {
  const { clock, version, secrets, progress } = deps;
  const { postgres, migrations, restoring, hasJobs } = await store.readState(session);
  const own = await readMigrations();
  if (migrations.length === 0) throw new BackupError('This database was never used by Quarry.');
  const mismatch = findMismatch(migrations, own);
  if (mismatch !== undefined) throw new BackupError(`${mismatch} Take the backup with the release that serves it.`);
  if (!hasJobs)
    throw new BackupError(
      'The database still has the tables of release 0.1.0. Take the backup with that release, or run `quarry migrate` first.',
    );
  if (restoring !== undefined) throw new BackupError('A restore into this database has not finished.');
  const cell = await store.readCell(session);
  const rows = await dumpRows(session, archive, store.ownTables(own), progress);
  const takenAt = clock.now().toISOString();
  progress.report(`rows done: ${rows.tables.length} tables`);
  const blobs = await dumpBlobs(deps, session, archive, rows.blobList);
  const manifest: Manifest = {
    format: 1,
    id: newUuid(),
    quarry: version,
    postgres,
    taken_at: takenAt,
    ...defined({ cell }),
    migrations,
    tables: rows.tables,
    jobs: rows.jobs,
    sequences: rows.sequences,
    blobs: { ...blobs, parts: rows.blobList },
    secret_proof: secrets.wrap(Buffer.from(secretProofText)).toString('base64'),
    ...(secret === undefined ? {} : { secret: await writePart(archive, 'secret', Buffer.from(`${secret}\n`)) }),
  };
  const { text, sum } = formatManifest(manifest);
  await writePart(archive, manifestName, Buffer.from(text));
  await writePart(archive, manifestSumName, Buffer.from(sum));
  await archive.sync();
  return manifest;
}

type DumpedRows = Pick<Manifest, 'tables' | 'jobs' | 'sequences'> & { blobList: Part[] };

/** Dumps all rows of one snapshot. Its transaction ends before the first blob is copied, so that it does not delay vacuum. */
async function dumpRows(
  session: store.Session,
  archive: Archive,
  own: Set<string>,
  progress: Progress,
): Promise<DumpedRows> {
  const tables = (await store.listTables(session)).filter(({ name }) => own.has(name));
  await session.query('begin isolation level repeatable read read only');
  try {
    // Lock before the first query, which takes the snapshot: no table changes after it was listed.
    await store.lockTables(session, tables);
    const seen = (await store.listTables(session)).filter(({ name }) => own.has(name));
    if (JSON.stringify(seen) !== JSON.stringify(tables))
      throw new BackupError('The database was migrated during the backup. Take the backup again.');
    const dumped: RowsEntry[] = [];
    for (const table of tables) {
      const { rows, parts } = await dump(session, store.copyOut(table), archive, `rows/${table.name}`);
      dumped.push({ ...table, rows, parts });
      progress.reportAtIntervals(() => `rows: ${dumped.length} of ${tables.length} tables, ${table.name} had ${rows}`);
    }
    const jobs = await dump(session, store.copyJobsOut, archive, 'jobs/jobs');
    const list = await dump(session, store.copyBlobListOut, archive, 'blob-list/blobs');
    const sequences = await store.readSequences(session);
    await session.query('commit');
    return { tables: dumped, jobs: { ...store.jobsTable, ...jobs }, sequences, blobList: list.parts };
  } catch (error) {
    // An unfinished COPY blocks the connection, which can neither be used nor closed normally.
    store.dropSession(session);
    throw error;
  }
}

async function dump(
  session: store.Session,
  statement: string,
  archive: Archive,
  prefix: string,
): Promise<{ rows: number; parts: Part[] }> {
  const writer = new PartWriter(archive, prefix);
  for await (const chunk of session.query(copyTo(statement))) await writer.write(chunk);
  return writer.finish();
}

async function dumpBlobs(
  { blobs, progress }: BackupDeps,
  session: store.Session,
  archive: Archive,
  list: readonly Part[],
): Promise<{ count: number; bytes: number }> {
  const { store: target, isThere, close } = await archive.openBlobs('write');
  let lost: Error | undefined;
  session.on('error', (error) => {
    lost = error;
  });
  // A connection that only holds a lock is idle for hours, and gateways drop idle connections.
  const heartbeat = setInterval(() => void session.query('select 1').catch(() => {}), heartbeatMs);
  try {
    const copied = await copyBlobs(readBlobList(archive, list), blobs, target, {
      ...defined({ isThere }),
      onCopied: ({ count, bytes }) => progress.reportAtIntervals(() => `blobs: ${count}, ${megabytes(bytes)}`),
      alive: () => {
        if (lost !== undefined)
          throw new BackupError(`Lost the database connection that prevents the removal of blobs: ${lost.message}`);
      },
    });
    // Throws when the connection, and with it the lock, is lost: then a blob may have been removed meanwhile.
    await store.releaseBackupLock(session);
    return copied;
  } finally {
    clearInterval(heartbeat);
    await close();
  }
}

const heartbeatMs = 30_000;

async function requireFree(target: string): Promise<void> {
  const entries = await readdir(target).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (entries === undefined) return;
  throw new BackupError(`${target} already exists. Name a new directory, such as ${basename(target)}-2.`);
}
