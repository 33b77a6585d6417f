import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { systemClock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import {
  assertBlobKey,
  type BlobEntry,
  BlobMeter,
  BlobMissing,
  type BlobStore,
  BlobTooLarge,
  type ByteRange,
  identityKey,
  type PresignOptions,
  type PutOptions,
  type StoredBlob,
} from './blob-store.ts';
import { abort, findStat, isAbsent, remove } from './s3-objects.ts';
import { isPartialKey, s3Partials } from './s3-partials.ts';
import { presigner, sdk, storage } from './s3-sdk.ts';
import { watchStreamMemory, watchTransferMemory } from './transfer-memory.ts';

const { GetObjectCommand, ListMultipartUploadsCommand, ListObjectsV2Command, PutObjectCommand, S3ServiceException } =
  sdk;

export type S3Options = {
  bucket: string;
  region: string;
  endpoint?: string | undefined;
  pathStyle: boolean;
  /** Absent: the usual AWS sources (shared files, container and instance roles). */
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string | undefined } | undefined;
};

const connectTimeoutMs = 5_000;
/** A socket without traffic for this long is dead. A slow client keeps its socket alive. */
const idleTimeoutMs = 120_000;
/** Without a response by then, the store is down. The request is sent up to three times. */
const responseTimeoutMs = 15_000;
/** The body of a request extends the response timeout: at least this many bytes are sent per millisecond. */
const bodyBytesPerMs = 1_000;
/** A download holds a socket until its client has read it. With no socket free, other requests wait. */
const socketsMax = 512;
/** Memory of one part of an upload; two are sent concurrently. S3 requires parts of at least 5 MiB. */
const partBytesMin = 8 * 1024 * 1024;
const partsInFlight = 2;
/** S3's limit of parts in one object. */
const partsMax = 10_000;

/** Blobs as objects in a bucket of S3 or a compatible service. */
export function openS3BlobStore(options: S3Options): BlobStore {
  const { bucket } = options;
  const client = createClient(options);
  return {
    kind: 's3',
    put: async (key, body, putOptions) => put(client, bucket, blobKey(key), body, putOptions),
    read: async (key, range) => read(client, bucket, blobKey(key), range),
    readAll: async (key, sizeMax) => readAll(client, bucket, blobKey(key), sizeMax),
    stat: async (key) => findStat(client, bucket, blobKey(key)),
    remove: async (key) => remove(client, bucket, blobKey(key)),
    list: (prefix = '') => list(client, bucket, prefix),
    presignedUrl: async (key, presignOptions) => presignedUrl(client, bucket, blobKey(key), presignOptions),
    sweepTemporary: (olderThanMs, isKept = async () => false) => sweep(client, bucket, olderThanMs, isKept),
    partials: s3Partials(client, bucket, { partBytesMin, partsMax }),
    close: async () => client.destroy(),
  };
}

function blobKey(key: string): string {
  assertBlobKey(key);
  return key;
}

/** Objects below a prefix of a bucket, which are not blobs: their keys may have any form. */
export type S3Objects = Pick<BlobStore, 'put' | 'read' | 'stat' | 'remove' | 'list' | 'close'>;

/** @param prefix empty, or ends with a slash; keys are relative to it. */
export function openS3Objects(options: S3Options, prefix: string): S3Objects {
  const { bucket } = options;
  const client = createClient(options);
  return {
    put: (key, body, putOptions) => put(client, bucket, `${prefix}${key}`, body, putOptions),
    read: (key, range) => read(client, bucket, `${prefix}${key}`, range),
    stat: (key) => findStat(client, bucket, `${prefix}${key}`),
    remove: (key) => remove(client, bucket, `${prefix}${key}`),
    async *list(start = '') {
      for await (const { key, ...entry } of list(client, bucket, `${prefix}${start}`))
        yield { ...entry, key: key.slice(prefix.length) };
    },
    close: async () => client.destroy(),
  };
}

function createClient({ region, endpoint, pathStyle, credentials }: S3Options): S3Client {
  return new sdk.S3Client({
    region,
    forcePathStyle: pathStyle,
    ...defined({ endpoint }),
    ...(credentials === undefined ? {} : { credentials: withoutUndefined(credentials) }),
    // Quarry hashes the bytes itself, and compatible services reject the trailing checksums that the SDK adds by default.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: connectTimeoutMs,
      socketTimeout: idleTimeoutMs,
      requestTimeout: responseTimeoutMs + partBytesMin / bodyBytesPerMs,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets: socketsMax },
      httpsAgent: { keepAlive: true, maxSockets: socketsMax },
    },
  });
}

function withoutUndefined({ accessKeyId, secretAccessKey, sessionToken }: NonNullable<S3Options['credentials']>) {
  return sessionToken === undefined ? { accessKeyId, secretAccessKey } : { accessKeyId, secretAccessKey, sessionToken };
}

async function put(
  client: S3Client,
  bucket: string,
  key: string,
  body: Uint8Array | AsyncIterable<Uint8Array>,
  options: PutOptions,
): Promise<StoredBlob> {
  const meter = new BlobMeter(key, options);
  const place = { Bucket: bucket, Key: key, ContentType: options.contentType };
  if (body instanceof Uint8Array) {
    meter.take(body);
    const stored = meter.finish();
    await client.send(new PutObjectCommand({ ...place, Body: body }), {
      requestTimeout: responseTimeoutMs + body.byteLength / bodyBytesPerMs,
    });
    return stored;
  }
  let stored: StoredBlob | undefined;
  // Checked before the last part completes, so that an invalid body never becomes an object.
  async function* metered(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      meter.take(chunk);
      yield chunk;
    }
    stored = meter.finish();
  }
  const upload = new storage.Upload({
    client,
    params: { ...place, Body: Readable.from(metered(body), { objectMode: false }) },
    partSize: Math.max(partBytesMin, Math.ceil((options.sizeMax ?? 0) / partsMax)),
    queueSize: partsInFlight,
  });
  const end = watchTransferMemory();
  try {
    await upload.done();
  } finally {
    end();
  }
  if (stored === undefined) throw new Error('An upload ended before its body.');
  return stored;
}

async function read(client: S3Client, bucket: string, key: string, range: ByteRange | undefined): Promise<Readable> {
  if (range !== undefined && range.end <= range.start) {
    if ((await findStat(client, bucket, key)) === undefined) throw new BlobMissing(key);
    return Readable.from([]);
  }
  try {
    const { Body } = await client.send(
      new GetObjectCommand({
        Bucket: bucket,
        Key: key,
        ...(range === undefined ? {} : { Range: `bytes=${range.start}-${range.end - 1}` }),
      }),
    );
    if (!(Body instanceof Readable)) throw new Error('S3 returned a response without a body.');
    return watchStreamMemory(Body);
  } catch (error) {
    if (isAbsent(error)) throw new BlobMissing(key, error);
    throw error;
  }
}

async function readAll(client: S3Client, bucket: string, key: string, sizeMax: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of await read(client, bucket, key, undefined)) {
    size += chunk.byteLength;
    if (size > sizeMax) throw new BlobTooLarge(key, sizeMax);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

async function* list(client: S3Client, bucket: string, prefix: string): AsyncGenerator<BlobEntry> {
  let after: string | undefined;
  do {
    const page = await client.send(
      new ListObjectsV2Command({
        Bucket: bucket,
        Prefix: prefix,
        ...defined({ ContinuationToken: after }),
      }),
    );
    for (const { Key, Size, LastModified } of page.Contents ?? [])
      if (Key !== undefined && Key !== identityKey && !isPartialKey(Key) && LastModified !== undefined)
        yield { key: Key, size: Size ?? 0, modifiedAt: LastModified };
    after = page.NextContinuationToken;
  } while (after !== undefined);
}

async function presignedUrl(
  client: S3Client,
  bucket: string,
  key: string,
  { expiresSeconds, contentType, contentDisposition }: PresignOptions,
): Promise<string> {
  const command = new GetObjectCommand({
    Bucket: bucket,
    Key: key,
    ResponseContentType: contentType,
    ResponseContentDisposition: contentDisposition,
  });
  return presigner.getSignedUrl(client, command, { expiresIn: expiresSeconds });
}

/** An interrupted multipart upload is not an object, but its parts are stored, and billed, until it is aborted. */
async function sweep(
  client: S3Client,
  bucket: string,
  olderThanMs: number,
  isKept: (key: string) => Promise<boolean>,
): Promise<number> {
  const before = systemClock.now().getTime() - olderThanMs;
  let removed = 0;
  let marker: { KeyMarker?: string; UploadIdMarker?: string } | undefined = {};
  while (marker !== undefined) {
    const page = await listUploads(client, bucket, marker);
    for (const { Key, UploadId, Initiated } of page?.Uploads ?? []) {
      if (Key === undefined || UploadId === undefined || Initiated === undefined) continue;
      if (Initiated.getTime() > before || (await isKept(Key))) continue;
      await abort(client, bucket, Key, UploadId);
      removed += 1;
    }
    const { NextKeyMarker, NextUploadIdMarker } = page ?? {};
    marker =
      page?.IsTruncated === true && NextKeyMarker !== undefined && NextUploadIdMarker !== undefined
        ? { KeyMarker: NextKeyMarker, UploadIdMarker: NextUploadIdMarker }
        : undefined;
  }
  return removed;
}

/** Undefined from a service that cannot list uploads and expires them by its own rules. */
async function listUploads(client: S3Client, bucket: string, marker: { KeyMarker?: string; UploadIdMarker?: string }) {
  try {
    return await client.send(new ListMultipartUploadsCommand({ Bucket: bucket, ...marker }));
  } catch (error) {
    if (error instanceof S3ServiceException && error.name === 'NotImplemented') return undefined;
    throw error;
  }
}
