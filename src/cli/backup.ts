import { BackupError } from '../backup/error.ts';
import type { Manifest } from '../backup/manifest.ts';
import { megabytes, Progress } from '../backup/progress.ts';
import { restoreBackup } from '../backup/restore.ts';
import { takeBackup } from '../backup/take.ts';
import { verifyBackup } from '../backup/verify.ts';
import { openBlobStore } from '../blob/open.ts';
import { systemClock } from '../clock.ts';
import { readConfig } from '../config.ts';
import { createLogger } from '../log.ts';
import { findSecret, saveSecret } from '../services.ts';
import { Secrets } from '../tenancy/secrets.ts';
import { version } from '../version.ts';
import { withDatabase } from './with-database.ts';

/** Takes a backup of the configured database and blobs while servers use them. */
export async function take(directory: string, { includeSecret }: { includeSecret?: boolean }): Promise<number> {
  const config = readConfig();
  const log = createLogger(config.logLevel);
  if (includeSecret && config.secret !== undefined)
    throw new BackupError('--include-secret is for the generated secret of a data directory; QUARRY_SECRET is yours.');
  const root = config.secret ?? findSecret(config.dataDir);
  if (root === undefined) throw new BackupError(`There is nothing to back up in ${config.dataDir}.`);
  const blobs = await openBlobStore(config);
  try {
    const manifest = await withDatabase(config, log, (_db, target) =>
      takeBackup(
        {
          ...{ target, blobs, clock: systemClock, version, progress: onStandardError() },
          secrets: new Secrets(root, config.secretPrevious),
        },
        directory,
        includeSecret ? root : undefined,
      ),
    );
    process.stdout.write(`${summary(manifest)} in ${directory}\n`);
    return 0;
  } finally {
    await blobs.close();
  }
}

/** Verifies a backup. Needs no server and no settings. */
export async function verify(directory: string): Promise<number> {
  const manifest = await verifyBackup(directory, onStandardError());
  process.stdout.write(`${summary(manifest)}: complete and undamaged\n`);
  return 0;
}

/** Restores a backup into the configured, empty database and blob store. */
export async function restore(directory: string, { reuseBlobs }: { reuseBlobs?: boolean }): Promise<number> {
  const config = readConfig();
  const log = createLogger(config.logLevel);
  const blobs = await openBlobStore(config);
  try {
    const manifest = await withDatabase(config, log, (db, target) =>
      restoreBackup({ db, target, blobs, log, progress: onStandardError() }, directory, {
        reuseBlobs: reuseBlobs === true,
        openSecrets(archived) {
          const own = config.secret ?? findSecret(config.dataDir);
          if (own !== undefined) return new Secrets(own, config.secretPrevious);
          if (archived === undefined)
            throw new BackupError(
              'Neither the backup nor this server has a root secret. Set QUARRY_SECRET to the one that it was taken with, or put its file "secret" into the data directory.',
            );
          saveSecret(config.dataDir, archived);
          return new Secrets(archived);
        },
      }),
    );
    process.stdout.write(
      `${summary(manifest)} restored. Keys and tokens are unchanged. Start the server with \`quarry serve\`.\n`,
    );
    return 0;
  } finally {
    await blobs.close();
  }
}

function onStandardError(): Progress {
  return new Progress((line) => process.stderr.write(`${line}\n`));
}

function summary({ tables, blobs, taken_at, quarry }: Manifest): string {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  return `Backup of ${taken_at} by quarry ${quarry}: ${rows} rows, ${blobs.count} blobs of ${megabytes(blobs.bytes)}`;
}
