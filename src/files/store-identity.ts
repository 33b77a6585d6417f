import { BlobMissing, type BlobStore, identityKey } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import { findFact, putFact } from '../db/server-facts.ts';
import { newUuid } from '../ids.ts';
import { sampleBlobKeys } from './store.ts';

const identityBytesMax = 100;
const sampleSize = 5;
/** One process at a time compares; the number only has to be ours. */
const lockKey = 7_130_241_004;

/** The database's files are in another blob store than the one that this process would use. */
export class BlobStoreMismatchError extends Error {}

/**
 * Makes sure that every process on one database has the same blob store: two that were each given a directory of their
 * own would each miss the other's files. The store carries an id, the database remembers it. A store without an id,
 * such as a copy of the files alone, is taken for the right one when contents that the database knows are in it.
 * @throws BlobStoreMismatchError with words that say how to mend it.
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
      ? 'Give every process the same QUARRY_DATA_DIR on a disk that they share, or use QUARRY_BLOB_STORE=s3.'
      : 'Check QUARRY_S3_ENDPOINT and QUARRY_S3_BUCKET.';
  return new BlobStoreMismatchError(
    `The files of this database are in another blob store than this ${blobs.kind} one. ${cure} ` +
      "If this one is right all the same, run in the database: delete from server_facts where name = 'blob_store'",
  );
}
