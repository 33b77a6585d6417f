import { type Archive, openDirectory } from '../../backup/archive.ts';
import { type BackupBucket, listBackups, openBucketArchive, parseBucketUrl } from '../../backup/bucket.ts';
import { BackupError } from '../../backup/error.ts';
import { type Manifest, readManifest } from '../../backup/manifest.ts';
import { megabytes, Progress } from '../../backup/progress.ts';
import { restoreBackup } from '../../backup/restore.ts';
import { takeBackup, takeBackupToBucket } from '../../backup/take.ts';
import { verifyBackup } from '../../backup/verify.ts';
import { credentialsOf, openBlobStore, openS3 } from '../../blob/open.ts';
import { findSecret, saveSecret } from '../../boot/services.ts';
import { type CellSettings, readCells } from '../../cells/settings.ts';
import { type Config, readConfig } from '../../config/config.ts';
import type { DatabaseTarget } from '../../db/address.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { registerDirectory } from '../../erasures/register.ts';
import { replayErasures } from '../../erasures/replay.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLogger } from '../../lib/log.ts';
import { version } from '../../lib/version.ts';
import { Secrets } from '../../tenancy/secrets.ts';
import { countOf } from '../count.ts';
import { UsageError } from '../errors.ts';
import { describeError } from '../explain.ts';
import { directoryName, reconcileRestored } from './reconcile.ts';
import { withDatabase } from './with-database.ts';

export type TakeOptions = { to?: string; keep?: number; includeSecret?: boolean; cell?: string };
export type RestoreOptions = { reuseBlobs?: boolean; cell?: string };

/** Takes a backup of the configured databases and blobs while servers use them. */
export async function take(
  directory: string | undefined,
  { to, keep, includeSecret, cell }: TakeOptions,
): Promise<number> {
  if ((directory === undefined) === (to === undefined))
    throw new UsageError('Name a new directory, or a bucket with --to s3://bucket/prefix.');
  if (keep !== undefined && to === undefined) throw new UsageError('--keep is for backups in a bucket (--to).');
  const config = readConfig();
  if (includeSecret && config.secret !== undefined)
    throw new BackupError(
      '--include-secret applies only to the generated secret of a data directory. Keep a copy of QUARRY_SECRET yourself.',
    );
  const root = config.secret ?? findSecret(config.dataDir);
  if (root === undefined) throw new BackupError(`There is nothing to back up in ${config.dataDir}.`);
  const secret = includeSecret ? root : undefined;
  const secrets = new Secrets(root, config.secretPrevious);
  const common = { clock: systemClock, version, progress: progressOnStandardError(), secrets };
  const databases = selectDatabases(config, cell);
  const blobs = await openBlobStore(config);
  let code = 0;
  try {
    for (const { name, target } of databases) {
      // One cell has the place to itself; of several, each has a part of it.
      const within = (place: string) => (databases.length === 1 ? place : `${place.replace(/\/+$/, '')}/${name}`);
      try {
        await onTarget(config, target, async (own) => {
          const deps = { ...common, target: own, blobs };
          if (directory !== undefined) {
            const manifest = await takeBackup(deps, within(directory), secret);
            process.stdout.write(`${describeManifest(manifest)} in ${within(directory)}\n`);
            return;
          }
          await withBucket(config, within(to ?? ''), async (bucket) => {
            const { manifest, name: stamped, removed } = await takeBackupToBucket(deps, bucket, { keep, secret });
            process.stdout.write(
              `${describeManifest(manifest)} in ${stamped}${removed > 0 ? `; ${removed} older removed` : ''}\n`,
            );
          });
        });
      } catch (error) {
        if (databases.length === 1) throw error;
        process.stderr.write(`${name}: ${describeError(error)}\n`);
        code = 1;
      }
    }
    process.stderr.write(
      `${describeSecrets(config, { includeSecret: includeSecret === true, encrypted: to !== undefined })}\n`,
    );
    return code;
  } finally {
    await blobs.close();
  }
}

type NamedDatabase = { name: string; target: DatabaseTarget | undefined };

/** The database of one cell, or all of them: first the directory's, whose target the settings name. */
function selectDatabases(config: Config, cell: string | undefined): NamedDatabase[] {
  const cells = readCells(config);
  if (cells === undefined && cell !== undefined) throw new UsageError('QUARRY_CELLS is not set: leave out --cell.');
  const all = [
    { name: directoryName, target: undefined },
    ...(cells ?? []).flatMap(({ name, target, directTarget }) =>
      target === undefined ? [] : [{ name, target: directTarget ?? target }],
    ),
  ];
  if (cell === undefined) return all;
  const own = cells?.find(({ target }) => target === undefined)?.name;
  const chosen = all.find(({ name }) => name === (cell === own ? directoryName : cell));
  if (chosen === undefined) throw new UsageError(`QUARRY_CELLS has no cell ${cell}.`);
  return [chosen];
}

/** Runs work with the target, or with that of the configured database. */
function onTarget<T>(
  config: Config,
  target: DatabaseTarget | undefined,
  work: (target: DatabaseTarget) => Promise<T>,
): Promise<T> {
  return target === undefined
    ? withDatabase(config, createLogger(config.logLevel), (_db, own) => work(own))
    : work(target);
}

/** Says which secrets a restore needs and where to keep them. */
function describeSecrets({ secret, dataDir }: Config, backup: { includeSecret: boolean; encrypted: boolean }): string {
  const root = backup.includeSecret
    ? 'The root secret is in this backup: anyone who reads it can read every stored credential.'
    : secret === undefined
      ? `The root secret is not in this backup. Without it, a restore is refused: keep a copy of ${dataDir}/secret in another place, such as a password manager.`
      : 'The root secret is not in this backup. Without it, a restore is refused: keep a copy of QUARRY_SECRET in another place, such as a password manager.';
  return backup.encrypted
    ? `${root}\nWithout QUARRY_BACKUP_KEY nobody can read this backup: keep a copy of that too, not in the same bucket.`
    : root;
}

/** Verifies a backup. One in a directory needs no server and no settings. */
export async function verify(place: string): Promise<number> {
  return withArchive(place, async (archive) => {
    const manifest = await verifyBackup(archive, progressOnStandardError());
    process.stdout.write(`${describeManifest(manifest)}: complete and undamaged\n`);
    return 0;
  });
}

/** Lists the complete backups of a bucket, oldest first. */
export async function list(url: string): Promise<number> {
  return withBucket(readConfig(), url, async (bucket) => {
    for (const stamp of await listBackups(bucket)) process.stdout.write(`${bucket.name}/${stamp}\n`);
    return 0;
  });
}

/** Restores a backup into the configured, empty database and blob store. With cells, into the database of one of them. */
export async function restore(place: string, options: RestoreOptions): Promise<number> {
  const config = readConfig();
  const cells = readCells(config);
  const [chosen] = options.cell === undefined ? [] : selectDatabases(config, options.cell);
  const blobs = await openBlobStore(config);
  let secrets: Secrets | undefined;
  let erased = 0;
  try {
    const manifest = await withArchive(place, async (archive) => {
      const { cell } = await readManifest(archive);
      if (cells !== undefined) requireCell(cell?.name ?? null, chosen?.target && chosen.name, cells);
      return onDatabase(config, chosen?.target, (db, target) =>
        restoreBackup({ db, target, blobs, progress: progressOnStandardError() }, archive, {
          // All cells have one blob store, which is not empty while another one works.
          reuseBlobs: options.reuseBlobs === true || cells !== undefined,
          openSecrets(archived) {
            secrets = secretsOf(config, archived);
            return secrets;
          },
          async finish(restored) {
            if (secrets === undefined) return;
            erased = await replayErasures({ db: restored, secrets, clock: systemClock }, registerDirectory(config));
            if (cells === undefined) return;
            await onTarget(config, chosen?.target === undefined ? target : undefined, (directory) =>
              reconcileRestored(config, directory, chosen?.target === undefined ? directoryName : chosen.name),
            );
          },
        }),
      );
    });
    process.stdout.write(
      `${describeManifest(manifest)} restored${erased > 0 ? `, ${countOf(erased, 'erasure')} repeated` : ''}. Keys and tokens are unchanged. Start the server with \`quarry serve\`.\n`,
    );
    return 0;
  } finally {
    await blobs.close();
  }
}

/** Throws BackupError unless the backup is that of the database that it is restored into. */
function requireCell(archived: string | null, into: string | undefined, cells: readonly CellSettings[]): void {
  const own = cells.find(({ target }) => target === undefined)?.name;
  const isDirectory = archived === null || archived === own;
  if (into === undefined ? isDirectory : archived === into) return;
  throw new BackupError(
    isDirectory
      ? 'This is a backup of the directory: leave out --cell.'
      : `This is a backup of the cell ${archived}: add --cell ${archived}.`,
  );
}

/** The server's root secret, or that of the backup, which becomes the server's. */
function secretsOf(config: Config, archived: string | undefined): Secrets {
  const own = config.secret ?? findSecret(config.dataDir);
  if (own !== undefined) return new Secrets(own, config.secretPrevious);
  if (archived === undefined)
    throw new BackupError(
      'Neither the backup nor this server has a root secret. Set QUARRY_SECRET to the one that it was taken with, or put its file "secret" into the data directory.',
    );
  saveSecret(config.dataDir, archived);
  return new Secrets(archived);
}

async function onDatabase<T>(
  config: Config,
  target: DatabaseTarget | undefined,
  work: (db: Database, target: DatabaseTarget) => Promise<T>,
): Promise<T> {
  if (target === undefined) return withDatabase(config, createLogger(config.logLevel), work);
  const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-cli', prepare: config.prepare === 'on' });
  try {
    return await work(db, target);
  } finally {
    await db.end({ timeout: 5 });
  }
}

/** A directory, or a backup in a bucket: the newest unless the URL names one. */
export async function withArchive<T>(place: string, work: (archive: Archive) => Promise<T>): Promise<T> {
  if (!place.startsWith('s3:')) return work(openDirectory(place));
  return withBucket(readConfig(), place, async (bucket, stamp) => {
    const chosen = stamp ?? (await listBackups(bucket)).at(-1);
    if (chosen === undefined) throw new BackupError(`There is no complete backup in ${bucket.name}.`);
    return work(openBucketArchive(bucket, chosen));
  });
}

async function withBucket<T>(
  config: Config,
  url: string,
  work: (bucket: BackupBucket, stamp: string | undefined) => Promise<T>,
): Promise<T> {
  const { bucket, prefix, stamp } = parseBucketUrl(url);
  if (config.backupKey === undefined)
    throw new BackupError(
      'Backups in a bucket are encrypted: set QUARRY_BACKUP_KEY, for example to `openssl rand -hex 32`.',
    );
  const { openS3Objects } = await openS3(config.dataDir);
  const { backupS3AccessKeyId: accessKeyId, backupS3SecretAccessKey: secretAccessKey } = config;
  const own = accessKeyId !== undefined && secretAccessKey !== undefined ? { accessKeyId, secretAccessKey } : undefined;
  const options = {
    bucket,
    region: config.backupS3Region ?? config.s3Region,
    endpoint: config.backupS3Endpoint ?? config.s3Endpoint,
    pathStyle: config.s3PathStyle,
    credentials: own ?? credentialsOf(config),
  };
  const objects = openS3Objects(options, prefix);
  try {
    return await work({ objects, key: config.backupKey, name: `s3://${bucket}/${prefix}`.replace(/\/$/, '') }, stamp);
  } finally {
    await objects.close();
  }
}

function progressOnStandardError(): Progress {
  return new Progress((line) => process.stderr.write(`${line}\n`));
}

function describeManifest({ tables, blobs, taken_at, quarry }: Manifest): string {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  return `Backup of ${taken_at} by quarry ${quarry}: ${countOf(rows, 'row')}, ${countOf(blobs.count, 'blob')} of ${megabytes(blobs.bytes)}`;
}
