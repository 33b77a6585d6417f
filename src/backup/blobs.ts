import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { BlobChecksumMismatch, BlobMissing, type BlobStore, BlobTooLarge } from '../blob/blob-store.ts';
import type { ListedBlob } from './archive.ts';
import { BackupError } from './error.ts';

/** Requests to S3 have latency, so several run concurrently. A disk gains little from it. */
const concurrency = 8;
const missingShown = 10;

type Copied = { count: number; bytes: number };

/**
 * Copies the listed blobs and hashes each while copying.
 * @param options.isThere returns true for blobs already in the target; they are counted, not copied.
 * @param options.alive throws when copying must stop.
 * @throws BackupError with the blobs that are missing from the source or have different bytes.
 */
export async function copyBlobs(
  list: AsyncIterable<ListedBlob>,
  from: Pick<BlobStore, 'read'>,
  to: Pick<BlobStore, 'put'>,
  options: {
    isThere?: (blob: ListedBlob) => Promise<boolean>;
    alive?: () => void;
    onCopied: (copied: Copied) => void;
  },
): Promise<Copied> {
  const copied = { count: 0, bytes: 0 };
  const wrong: string[] = [];
  await forEachBlob(list, async (blob) => {
    options.alive?.();
    if (!(await options.isThere?.(blob))) {
      const problem = await copyBlob(blob, from, to);
      if (problem !== undefined) wrong.push(problem);
    }
    copied.count += 1;
    copied.bytes += blob.size;
    options.onCopied(copied);
  });
  if (wrong.length > 0)
    throw new BackupError(`${wrong.length} blobs do not match their rows:\n${wrong.slice(0, missingShown).join('\n')}`);
  return copied;
}

/** Runs the work for each blob of a list, several concurrently. */
export async function forEachBlob(
  list: AsyncIterable<ListedBlob>,
  work: (blob: ListedBlob) => Promise<void>,
): Promise<void> {
  const blobs = list[Symbol.asyncIterator]();
  let failed = false;
  const worker = async () => {
    try {
      for (let next = await blobs.next(); !next.done && !failed; next = await blobs.next()) await work(next.value);
    } catch (error) {
      failed = true;
      throw error;
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: concurrency }, worker));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

async function copyBlob(
  { key, size, sha256 }: ListedBlob,
  from: Pick<BlobStore, 'read'>,
  to: Pick<BlobStore, 'put'>,
): Promise<string | undefined> {
  let source: Readable | undefined;
  try {
    source = await from.read(key);
    const options = { contentType: 'application/octet-stream', checksum: sha256, sizeMax: size };
    const stored = await to.put(key, source, options);
    return stored.size === size ? undefined : `${key} has ${stored.size} bytes instead of ${size}`;
  } catch (error) {
    if ([BlobMissing, BlobChecksumMismatch, BlobTooLarge].some((kind) => error instanceof kind))
      return (error as Error).message;
    throw error;
  } finally {
    source?.destroy();
  }
}

/** Whether the store has exactly these bytes under the blob's key. */
export async function hasBlob(
  blobs: Pick<BlobStore, 'stat' | 'read'>,
  { key, size, sha256 }: ListedBlob,
): Promise<boolean> {
  if ((await blobs.stat(key))?.size !== size) return false;
  const hash = createHash('sha256');
  for await (const chunk of await blobs.read(key)) hash.update(chunk);
  return hash.digest('hex') === sha256;
}
