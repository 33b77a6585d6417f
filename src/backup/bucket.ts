import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { BlobMissing, type StoredBlob } from '../blob/blob-store.ts';
import type { S3Objects } from '../blob/s3.ts';
import type { Archive, ArchivedBlobs } from './archive.ts';
import { decrypt, encrypt, encryptedSize, plainSize } from './encryption.ts';
import { BackupError } from './error.ts';
import { manifestSumName, readManifest } from './manifest.ts';
import { readBlobList } from './parts.ts';

/*
 * Backups in a bucket: `<prefix>/backups/<time>/…` has the files of each, as a directory would, and `<prefix>/blobs/…`
 * the contents of files for all of them, each written once. Everything is encrypted with the operator's key.
 */
export type BackupBucket = { objects: S3Objects; key: string; name: string };

const stampPattern = /^\d{4}-\d\d-\d\dT\d{6}Z$/;
/** Rows come in parts of 8 MiB; a single row may be larger. */
const partBytesMax = 1024 * 1024 * 1024;
const contentType = 'application/octet-stream';

/** `s3://bucket/prefix`, or `s3://bucket/prefix/<time>` for one backup. Throws BackupError. */
export function parseBucketUrl(url: string): { bucket: string; prefix: string; stamp: string | undefined } {
  const match = /^s3:\/\/([a-z0-9.-]+)(?:\/([\w./-]*))?$/.exec(url);
  if (!match) throw new BackupError(`${url} is not a bucket: write s3://bucket/prefix.`);
  const [, bucket = '', path = ''] = match;
  const parts = path.split('/').filter((part) => part !== '');
  const stamp = stampPattern.test(parts.at(-1) ?? '') ? parts.pop() : undefined;
  return { bucket, prefix: parts.map((part) => `${part}/`).join(''), stamp };
}

/** The name of a backup taken at this time. */
export function stampOf(now: Date): string {
  return now
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(':', '');
}

/** The names of the complete backups, oldest first. */
export async function listBackups({ objects }: BackupBucket): Promise<string[]> {
  const stamps: string[] = [];
  for await (const { key } of objects.list('backups/')) {
    const [, stamp = '', name, ...more] = key.split('/');
    if (stampPattern.test(stamp) && name === manifestSumName && more.length === 0) stamps.push(stamp);
  }
  return stamps.sort();
}

/** One backup of the bucket. */
export function openBucketArchive(bucket: BackupBucket, stamp: string): Archive {
  const { objects, key } = bucket;
  const place = (name: string) => `backups/${stamp}/${name}`;
  return {
    name: `${bucket.name}/${stamp}`,
    async write(name, bytes) {
      await objects.put(place(name), encrypt(key, place(name), [bytes]), { contentType });
    },
    async read(name) {
      try {
        return await collect(decrypt(key, place(name), await objects.read(place(name))));
      } catch (error) {
        if (error instanceof BlobMissing) return undefined;
        throw error;
      }
    },
    openBlobs: (mode) => openBlobs(bucket, mode),
    sync: async () => {},
  };
}

async function openBlobs({ objects, key }: BackupBucket, mode: 'write' | 'read'): Promise<ArchivedBlobs> {
  const place = (name: string) => `blobs/${name}`;
  const sizes = mode === 'write' ? await readSizes(objects) : undefined;
  const store: ArchivedBlobs['store'] = {
    async put(name, body, options): Promise<StoredBlob> {
      const hash = createHash('sha256');
      let size = 0;
      async function* metered() {
        for await (const chunk of body instanceof Uint8Array ? [body] : body) {
          hash.update(chunk);
          size += chunk.byteLength;
          yield chunk;
        }
        // Before the last segment: a blob with other bytes never becomes an object.
        const checksum = hash.digest('hex');
        if (options.checksum !== undefined && checksum !== options.checksum)
          throw new BackupError(`The blob ${name} has the checksum ${checksum} instead of ${options.checksum}.`);
      }
      const sizeMax = encryptedSize(options.sizeMax ?? partBytesMax);
      await objects.put(place(name), encrypt(key, place(name), metered()), { contentType, sizeMax });
      return { key: name, size, checksum: options.checksum ?? '' };
    },
    read: async (name) => Readable.from(decrypt(key, place(name), await objects.read(place(name)))),
    async stat(name) {
      const found = await objects.stat(place(name));
      return found && { size: plainSize(found.size) };
    },
  };
  return {
    store,
    ...(sizes === undefined ? {} : { isThere: async (blob) => sizes.get(blob.key) === encryptedSize(blob.size) }),
    close: async () => {},
  };
}

/** The sizes of the blobs that earlier backups wrote, by key. Takes about 100 bytes of memory for each. */
async function readSizes(objects: S3Objects): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  for await (const { key, size } of objects.list('blobs/')) sizes.set(key.slice('blobs/'.length), size);
  return sizes;
}

/**
 * Keeps the newest `keep` complete backups. Removes the others, the files of interrupted ones, and the blobs that no kept
 * backup refers to. No backup of the same database may be running.
 * @returns how many backups were removed.
 */
export async function pruneBackups(bucket: BackupBucket, keep: number): Promise<number> {
  const { objects } = bucket;
  const complete = await listBackups(bucket);
  const kept = new Set(complete.slice(-keep));
  const needed = new Set<string>();
  for (const stamp of kept) {
    const archive = openBucketArchive(bucket, stamp);
    const { blobs } = await readManifest(archive);
    for await (const { key } of readBlobList(archive, blobs.parts)) needed.add(key);
  }
  // The manifest is deleted first, so that a backup that is only partly deleted counts as incomplete.
  for (const stamp of complete) if (!kept.has(stamp)) await objects.remove(`backups/${stamp}/${manifestSumName}`);
  for await (const { key } of objects.list('backups/'))
    if (!kept.has(key.split('/')[1] ?? '')) await objects.remove(key);
  for await (const { key } of objects.list('blobs/'))
    if (!needed.has(key.slice('blobs/'.length))) await objects.remove(key);
  return complete.length - kept.size;
}

async function collect(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}
