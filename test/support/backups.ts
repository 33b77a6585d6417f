import assert from 'node:assert/strict';
import { join } from 'node:path';
import { openDirectory } from '../../src/backup/archive.ts';
import { Progress } from '../../src/backup/progress.ts';
import { type RestoreOptions, restoreBackup } from '../../src/backup/restore.ts';
import type { BackupDeps } from '../../src/backup/take.ts';
import type { BlobStore } from '../../src/blob/blob-store.ts';
import { openDiskBlobStore } from '../../src/blob/disk.ts';
import { withDatabase } from '../../src/db/address.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { administrate } from './database.ts';
import type { TestServer } from './server.ts';

/** Where a backup is restored: a database without any table and a new directory of blobs. */
export type Emptiness = {
  db: Database;
  target: ReturnType<typeof withDatabase>;
  blobs: BlobStore;
  blobsDirectory: string;
  end(): Promise<void>;
};

const progress = new Progress(() => {});
let made = 0;

export function backupDeps({ services }: TestServer, blobs: BlobStore = services.blobs): BackupDeps {
  const { directTarget, secrets } = services;
  return { target: directTarget, blobs, secrets, clock: systemClock, version: '0.0.0', progress };
}

export async function createEmptiness({ services }: TestServer, directory: string): Promise<Emptiness> {
  made += 1;
  const name = `quarry_test_restored_${process.pid}_${made}`;
  const { directTarget: origin } = services;
  await administrate(origin, (sql) => sql`create database ${sql(name)}`);
  const target = withDatabase(origin, name);
  const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test' });
  const blobsDirectory = join(directory, name);
  const end = async () => {
    await db.end({ timeout: 5 });
    await administrate(origin, (sql) => sql`drop database ${sql(name)} with (force)`);
  };
  return { db, target, blobs: await openDiskBlobStore(blobsDirectory), blobsDirectory, end };
}

export function restoreInto(
  { db, target, blobs }: Emptiness,
  from: string,
  { services }: TestServer,
  more: Partial<RestoreOptions> = {},
) {
  const options = { openSecrets: () => services.secrets, reuseBlobs: false, ...more };
  return restoreBackup({ db, target, blobs, progress }, openDirectory(from), options);
}

/** A restored database is not partitioned, so a run on partitions cannot compare. */
export async function assertSameShape(restored: Database, original: Database): Promise<void> {
  if (process.env.QUARRY_TEST_PARTITIONS === undefined)
    assert.deepEqual(await shapeOf(restored), await shapeOf(original));
}

/** What makes the database what it is beside its rows. */
async function shapeOf(db: Database): Promise<string[]> {
  const rows = await db<{ line: string }[]>`
    select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) || ' ' || convalidated as line
      from pg_constraint where connamespace = 'public'::regnamespace
    union all select tgrelid::regclass || ' ' || tgname || ' ' || tgenabled::text from pg_trigger where not tgisinternal
    union all select indexdef from pg_indexes where schemaname = 'public' order by 1`;
  return rows.map(({ line }) => line);
}
