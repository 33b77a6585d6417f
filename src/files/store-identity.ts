import { BlobMissing, type BlobStore, identityKey } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import { findFact, putFact } from '../db/server-facts.ts';
import { newUuid } from '../lib/ids.ts';
import { sampleBlobKeys } from './store.ts';

const identityBytesMax = 100;
const sampleSize = 5;
/** Lets one process at a time compare. An arbitrary but unique number. */
const lockKey = 7_130_241_004;

/** The files of the database are in another blob store than the configured one. */
export class BlobStoreMismatchError extends Error {}

/**
 * Checks that every process on one database uses the same blob store: two processes with separate directories would
 * each miss the other's files. The id of the store is also stored in the database. A store without an id, such as a
 * copy of only the files, is accepted when it contains blobs that the database refers to.
 * @throws BlobStoreMismatchError with a message that says how to fix it.
 */
export async function matchBlobStore(db: Database, blobs: BlobStore): Promise<void> {
  await db.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${lockKey})`;
    const noted = await findFact(tx, 'blob_store');
    const found = await readIdentity(blobs);
    if (noted !== undefined && noted === found) return;
    if (found !== undefined) {
      if (noted !== undefined) throw mismatch(blobs);
      return putFact(tx, 'blob_store', found);
    }
    if (noted !== undefined && !(await holdsSample(blobs, await sampleBlobKeys(tx, sampleSize)))) throw mismatch(blobs);
    const id = noted ?? newUuid();
    await blobs.put(identityKey, Buffer.from(id), { contentType: 'text/plain' });
    await putFact(tx, 'blob_store', id);
  });
}

async function readIdentity(blobs: BlobStore): Promise<string | undefined> {
  try {
    return Buffer.from(await blobs.readAll(identityKey, identityBytesMax)).toString('utf8');
  } catch (error) {
    if (error instanceof BlobMissing) return undefined;
    throw error;
  }
}

async function holdsSample(blobs: BlobStore, keys: string[]): Promise<boolean> {
  for (const key of keys) if ((await blobs.stat(key)) === undefined) return false;
  return keys.length > 0;
}

function mismatch(blobs: BlobStore): BlobStoreMismatchError {
  const cure =
    blobs.kind === 'disk'
      ? 'Give every process the same QUARRY_DATA_DIR on a shared disk, or use QUARRY_BLOB_STORE=s3.'
      : 'Check QUARRY_S3_ENDPOINT and QUARRY_S3_BUCKET.';
  return new BlobStoreMismatchError(
    `The files of this database are in another blob store than this ${blobs.kind} one. ${cure} ` +
      "If the configured store is the right one, run this in the database: delete from server_facts where name = 'blob_store'",
  );
}
