import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import type { BlobStore } from '../blob/blob-store.ts';
import type { DatabaseTarget } from '../db/address.ts';
import type { Database } from '../db/database.ts';
import {
  findMismatch,
  hasOldNumbering,
  type Migration,
  migrate,
  oldMigrationsCount,
  readMigrations,
  replacingVersion,
} from '../db/migrate.ts';
import { createFacts, putFact } from '../db/server-facts.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import type { Archive } from './archive.ts';
import { copyBlobs, hasBlob } from './blobs.ts';
import { BackupError } from './error.ts';
import { type Manifest, type RowsEntry, readManifest, secretProofText } from './manifest.ts';
import { countRows, readBlobList, readPart, readRows } from './parts.ts';
import { megabytes, type Progress } from './progress.ts';
import * as store from './store.ts';
import { verifyBackup } from './verify.ts';

type RestoreDeps = {
  db: Database;
  /** The database of `db`, without a transaction pooler. */
  target: DatabaseTarget;
  blobs: BlobStore;
  progress: Progress;
};

export type RestoreOptions = {
  /** Returns the keys of the restored server's root secret; receives the secret in the backup, if there is one. */
  openSecrets: (archived: string | undefined) => Secrets;
  /** Work on the restored rows that must be done before a server may use them. It may be repeated. */
  finish?: (db: Database) => Promise<void>;
  /** Use blobs already in the store after their checksums are verified. */
  reuseBlobs: boolean;
};

/**
 * Restores a backup into an empty database and blob store, and brings the database to this release. Everything in the
 * backup is checked before anything is written, and again while it is loaded. The rows are loaded in one transaction;
 * until it commits, no server starts on the database, and running the same restore again resumes it.
 * @throws BackupError with the reason.
 */
export async function restoreBackup(
  deps: RestoreDeps,
  archive: Archive,
  { openSecrets, reuseBlobs, finish }: RestoreOptions,
): Promise<Manifest> {
  const { db, target, blobs, progress } = deps;
  const manifest = await readManifest(archive);
  const own = await readMigrations();
  const base = selectMigrations(manifest, own);
  const archivedSecret = manifest.secret && (await readPart(archive, manifest.secret)).toString('utf8').trim();
  const secrets = openSecrets(archivedSecret);
  if (!canUnwrap(secrets, Buffer.from(manifest.secret_proof, 'base64'), secretProofText)) throw wrongSecretError();

  const session = await store.openSession(target);
  try {
    // It is held until a server may start: a second restore would truncate what that server has written.
    if (!(await store.takeBackupLock(session)))
      throw new BackupError('Another restore into this database is running. Wait until it ends.');
    const { restoring, migrations } = await store.readState(session);
    if (restoring === loadedName(manifest)) {
      await finishRestore(db, manifest, own, finish);
      return manifest;
    }
    const isResumed = restoring === manifest.id;
    if (restoring !== undefined && !isResumed)
      throw new BackupError(
        `A restore of another backup (${restoring}) was started in this database. Empty the database first.`,
      );
    if (!isResumed && (migrations.length > 0 || (await store.listTables(session)).length > 0))
      throw new BackupError('The database is not empty. Restore into a new one.');
    if (!isResumed && !reuseBlobs && (await holdsBlobs(blobs)))
      throw new BackupError(
        'The blob store is not empty. Restore into a new one. If the backup was taken from this store and no server uses it, add --reuse-blobs.',
      );
    progress.report('checking the backup');
    await verifyBackup(archive, progress);

    await createFacts(db);
    await putFact(db, 'restoring', manifest.id);
    await restoreBlobs(deps, archive, manifest, reuseBlobs, isResumed);
    await migrate(db, base, { restoring: manifest.id });
    await load(session, archive, manifest, secrets, progress);
    await session.query('analyze');
    await finishRestore(db, manifest, own, finish);
    return manifest;
  } finally {
    await session.end().catch(() => {});
  }
}

/** How the database names this restore once its rows are loaded. */
function loadedName({ id }: Manifest): string {
  return `${id}, loaded`;
}

/** Brings the loaded rows to this release and into the state in which a server may use them. */
async function finishRestore(
  db: Database,
  manifest: Manifest,
  own: Migration[],
  finish: RestoreOptions['finish'],
): Promise<void> {
  await migrate(db, own, { restoring: loadedName(manifest) });
  await finish?.(db);
  await db`delete from server_facts where name = 'restoring'`;
}

/** The migrations of this release that create the tables of the backup. Throws when its schema does not match. */
export function selectMigrations({ migrations, quarry }: Manifest, own: readonly Migration[]): Migration[] {
  if (hasOldNumbering(migrations)) {
    if (migrations.length !== oldMigrationsCount)
      throw new BackupError(
        `The backup has ${migrations.length} of the ${oldMigrationsCount} migrations from before the first release. Run \`quarry migrate\` with the version that took it, then take a new backup.`,
      );
    return own.filter(({ version }) => version <= replacingVersion);
  }
  const last = migrations.at(-1)?.version ?? 0;
  if (last > (own.at(-1)?.version ?? 0))
    throw new BackupError(`The backup is from a newer release (${quarry}). Restore it with that release.`);
  const mismatch = findMismatch(migrations, own);
  if (mismatch !== undefined) throw new BackupError(`The backup does not fit this release (${quarry}): ${mismatch}`);
  return own.filter(({ version }) => version <= last);
}

async function restoreBlobs(
  { blobs, progress }: RestoreDeps,
  archive: Archive,
  manifest: Manifest,
  reuseBlobs: boolean,
  isResumed: boolean,
): Promise<void> {
  const { store: archived, close } = await archive.openBlobs('read');
  await copyBlobs(readBlobList(archive, manifest.blobs.parts), archived, blobs, {
    // Blobs written by this restore are complete; blobs that were there before are verified.
    isThere: async (blob) => {
      if (reuseBlobs) return hasBlob(blobs, blob);
      return isResumed && (await blobs.stat(blob.key))?.size === blob.size;
    },
    onCopied: ({ count, bytes }) =>
      progress.reportAtIntervals(() => `blobs: ${count} of ${manifest.blobs.count}, ${megabytes(bytes)}`),
  });
  await close();
  progress.report(`blobs done: ${manifest.blobs.count}`);
}

/** Loads all rows, sequences and jobs, and marks the restore as loaded, in one transaction. */
async function load(
  session: store.Session,
  archive: Archive,
  manifest: Manifest,
  secrets: Secrets,
  progress: Progress,
): Promise<void> {
  await session.query('begin');
  try {
    const keys = await store.prepareLoad(session, await store.listTables(session));
    for (const table of manifest.tables) {
      await loadRows(session, archive, store.copyIn(table), table);
      progress.reportAtIntervals(() => `rows: ${table.name} has ${table.rows}`);
    }
    if (manifest.tables.every(({ name }) => name !== 'credentials')) await store.fillCredentials(session);
    await store.finishLoad(session, await store.listTables(session), keys);
    for (const sequence of manifest.sequences) await store.setSequence(session, sequence);
    await store.createJobsTable(session);
    await loadRows(session, archive, store.copyIn(store.jobsTable), manifest.jobs);
    await store.takeRestoredJobs(session);
    const wrapped = await store.findWrappedKey(session);
    if (wrapped !== undefined && !canUnwrap(secrets, wrapped)) throw wrongSecretError();
    await session.query("update server_facts set value = $1 where name = 'restoring'", [loadedName(manifest)]);
    await session.query('commit');
  } catch (error) {
    // PostgreSQL rolls back when the connection closes, even in the middle of a COPY.
    store.dropSession(session);
    throw error;
  }
  progress.report(`rows done: ${manifest.tables.length} tables`);
}

/** Copies the rows of one table into the database. Throws BackupError for a damaged part or a wrong number of rows. */
export async function loadRows(
  session: store.Session,
  archive: Archive,
  statement: string,
  { name, rows, parts }: RowsEntry,
): Promise<void> {
  let found = 0;
  async function* counted(): AsyncGenerator<Buffer> {
    for await (const bytes of readRows(archive, parts)) {
      found += countRows(bytes);
      yield bytes;
    }
  }
  await pipeline(Readable.from(counted(), { objectMode: false }), session.query(copyFrom(statement)));
  if (found !== rows) throw new BackupError(`${name} has ${found} rows instead of ${rows}.`);
}

async function holdsBlobs(blobs: BlobStore): Promise<boolean> {
  for await (const _blob of blobs.list()) return true;
  return false;
}

function canUnwrap(secrets: Secrets, wrapped: Uint8Array, text?: string): boolean {
  try {
    const { plain } = secrets.unwrap(wrapped);
    return text === undefined || plain.toString('utf8') === text;
  } catch {
    return false;
  }
}

function wrongSecretError(): BackupError {
  return new BackupError(
    'The root secret differs from the one that the backup was taken with. Set QUARRY_SECRET to that one, or put its file "secret" into the data directory.',
  );
}
