import { type Archive, openDirectory } from '../../backup/archive.ts';
import { type BackupBucket, listBackups, openBucketArchive, parseBucketUrl } from '../../backup/bucket.ts';
import { BackupError } from '../../backup/error.ts';
import type { Manifest } from '../../backup/manifest.ts';
import { megabytes, Progress } from '../../backup/progress.ts';
import { restoreBackup } from '../../backup/restore.ts';
import { takeBackup, takeBackupToBucket } from '../../backup/take.ts';
import { verifyBackup } from '../../backup/verify.ts';
import { credentialsOf, openBlobStore, openS3 } from '../../blob/open.ts';
import { findSecret, saveSecret } from '../../boot/services.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { registerDirectory } from '../../erasures/register.ts';
import { replayErasures } from '../../erasures/replay.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLogger } from '../../lib/log.ts';
import { version } from '../../lib/version.ts';
import { Secrets } from '../../tenancy/secrets.ts';
import { countOf } from '../count.ts';
import { UsageError } from '../errors.ts';
import { withDatabase } from './with-database.ts';

export type TakeOptions = { to?: string; keep?: number; includeSecret?: boolean };

/** Takes a backup of the configured database and blobs while servers use them. */
export async function take(directory: string | undefined, { to, keep, includeSecret }: TakeOptions): Promise<number> {
  if ((directory === undefined) === (to === undefined))
    throw new UsageError('Name a new directory, or a bucket with --to s3://bucket/prefix.');
  if (keep !== undefined && to === undefined) throw new UsageError('--keep is for backups in a bucket (--to).');
  const config = readConfig();
  const log = createLogger(config.logLevel);
  if (includeSecret && config.secret !== undefined)
    throw new BackupError(
      '--include-secret applies only to the generated secret of a data directory. Keep a copy of QUARRY_SECRET yourself.',
    );
  const root = config.secret ?? findSecret(config.dataDir);
  if (root === undefined) throw new BackupError(`There is nothing to back up in ${config.dataDir}.`);
  const secret = includeSecret ? root : undefined;
  const secrets = new Secrets(root, config.secretPrevious);
  const common = { clock: systemClock, version, progress: progressOnStandardError(), secrets };
  const blobs = await openBlobStore(config);
  try {
    await withDatabase(config, log, async (_db, target) => {
      const deps = { ...common, target, blobs };
      if (directory !== undefined) {
        const manifest = await takeBackup(deps, directory, secret);
        process.stdout.write(`${describeManifest(manifest)} in ${directory}\n`);
        return;
      }
      await withBucket(config, to ?? '', async (bucket) => {
        const { manifest, name, removed } = await takeBackupToBucket(deps, bucket, { keep, secret });
        process.stdout.write(
          `${describeManifest(manifest)} in ${name}${removed > 0 ? `; ${removed} older removed` : ''}\n`,
        );
      });
    });
    process.stderr.write(
      `${describeSecrets(config, { includeSecret: includeSecret === true, encrypted: to !== undefined })}\n`,
    );
    return 0;
  } finally {
    await blobs.close();
  }
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

/** Restores a backup into the configured, empty database and blob store. */
export async function restore(place: string, { reuseBlobs }: { reuseBlobs?: boolean }): Promise<number> {
  const config = readConfig();
  const log = createLogger(config.logLevel);
  const blobs = await openBlobStore(config);
  let secrets: Secrets | undefined;
  let erased = 0;
  try {
    const manifest = await withArchive(place, (archive) =>
      withDatabase(config, log, (db, target) =>
        restoreBackup({ db, target, blobs, progress: progressOnStandardError() }, archive, {
          reuseBlobs: reuseBlobs === true,
          openSecrets(archived) {
            const own = config.secret ?? findSecret(config.dataDir);
            if (own !== undefined) {
              secrets = new Secrets(own, config.secretPrevious);
              return secrets;
            }
            if (archived === undefined)
              throw new BackupError(
                'Neither the backup nor this server has a root secret. Set QUARRY_SECRET to the one that it was taken with, or put its file "secret" into the data directory.',
              );
            saveSecret(config.dataDir, archived);
            secrets = new Secrets(archived);
            return secrets;
          },
          async finish(restored) {
            if (secrets === undefined) return;
            const directory = registerDirectory(config);
            erased = await replayErasures({ db: restored, secrets, clock: systemClock }, directory);
          },
        }),
      ),
    );
    process.stdout.write(
      `${describeManifest(manifest)} restored${erased > 0 ? `, ${countOf(erased, 'erasure')} repeated` : ''}. Keys and tokens are unchanged. Start the server with \`quarry serve\`.\n`,
    );
    return 0;
  } finally {
    await blobs.close();
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
