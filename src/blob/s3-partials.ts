import type { S3Client } from '@aws-sdk/client-s3';
import { appendBody, type PartialWriter } from './append.ts';
import { type AppendOptions, assertBlobKey, BlobMissing, type PartialBlobs, type PartialState } from './blob-store.ts';
import { abort, findStat, isAbsent, remove } from './s3-objects.ts';
import { sdk } from './s3-sdk.ts';
import { watchTransferMemory } from './transfer-memory.ts';

const {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} = sdk;

type PartLimits = {
  /** S3 requires 5 MiB; only the last part may be smaller. */
  partBytesMin: number;
  partsMax: number;
};

const partialPrefix = 'partial/';

/** Whether an object holds bytes of a partial blob: it is not a blob itself. */
export function isPartialKey(key: string): boolean {
  return key.startsWith(partialPrefix);
}

/**
 * Partial blobs as multipart uploads. Bytes that are too few for a part are stored as a separate object until more
 * arrive. Its name contains the number of parts before it, so that an object is never overwritten.
 */
export function s3Partials(client: S3Client, bucket: string, limits: PartLimits): PartialBlobs {
  const tailPrefix = (key: string) => {
    assertBlobKey(key);
    return `${partialPrefix}${key.replace('/', '-')}-`;
  };
  const tailKey = (key: string, { etags = [] }: PartialState) => `${tailPrefix(key)}${etags.length}`;
  return {
    async append(key, state, body, options) {
      const place = { client, bucket, key, tailKey: (of: PartialState) => tailKey(key, of), limits };
      const writer = await S3PartialWriter.open(place, state, options);
      const { save } = options;
      let saved = state;
      const end = watchTransferMemory();
      try {
        return await appendBody(writer, body, {
          ...options,
          async save(next) {
            await save(next);
            const former = tailKey(key, saved);
            if (saved.tail !== undefined && former !== tailKey(key, next)) await remove(client, bucket, former);
            saved = next;
          },
        });
      } finally {
        end();
      }
    },
    async complete(key, { size, uploadId, etags = [] }, contentType) {
      const place = { Bucket: bucket, Key: key };
      if (uploadId === undefined) {
        if (size > 0) throw new Error('A partial blob with bytes has no multipart upload.');
        await client.send(new PutObjectCommand({ ...place, Body: new Uint8Array(), ContentType: contentType }));
        return;
      }
      const parts = etags.map((ETag, i) => ({ ETag, PartNumber: i + 1 }));
      try {
        await client.send(
          new CompleteMultipartUploadCommand({ ...place, UploadId: uploadId, MultipartUpload: { Parts: parts } }),
        );
      } catch (error) {
        if (!isAbsent(error)) throw error;
        if ((await findStat(client, bucket, key))?.size !== size) throw new BlobMissing(key, error);
      }
    },
    async remove(key, { uploadId }) {
      if (uploadId !== undefined) await abort(client, bucket, key, uploadId);
      const found = await client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: tailPrefix(key) }));
      for (const { Key } of found.Contents ?? []) if (Key !== undefined) await remove(client, bucket, Key);
    },
  };
}

type PartialObject = {
  client: S3Client;
  bucket: string;
  key: string;
  tailKey: (state: PartialState) => string;
  limits: PartLimits;
};

/** Sends one part while the next one arrives, so it holds two in memory. */
class S3PartialWriter implements PartialWriter {
  readonly #place: PartialObject;
  readonly #options: AppendOptions;
  readonly #partBytes: number;
  #state: PartialState;
  #gathered: Uint8Array[] = [];
  #gatheredBytes = 0;
  #sending: Promise<void> | undefined;
  #reportedSize: number;

  private constructor(place: PartialObject, state: PartialState, options: AppendOptions, tail: Uint8Array) {
    const { partBytesMin, partsMax } = place.limits;
    this.#place = place;
    this.#options = options;
    this.#reportedSize = state.size;
    this.#partBytes = Math.max(partBytesMin, Math.ceil(options.sizeMax / partsMax));
    const { tail: _tail, ...rest } = state;
    this.#state = { ...rest, size: state.size - tail.byteLength };
    if (tail.byteLength > 0) this.#gather(tail);
  }

  /** Starts with the saved bytes that were too few for a part. */
  static async open(place: PartialObject, state: PartialState, options: AppendOptions): Promise<S3PartialWriter> {
    const { client, bucket, key } = place;
    if (state.tail === undefined) return new S3PartialWriter(place, state, options, new Uint8Array());
    try {
      const { Body } = await client.send(
        new GetObjectCommand({ Bucket: bucket, Key: place.tailKey(state), Range: `bytes=0-${state.tail - 1}` }),
      );
      const tail = await Body?.transformToByteArray();
      if (tail?.byteLength !== state.tail) throw new BlobMissing(key);
      return new S3PartialWriter(place, state, options, tail);
    } catch (error) {
      if (isAbsent(error)) throw new BlobMissing(key, error);
      throw error;
    }
  }

  async take(chunk: Uint8Array): Promise<PartialState | undefined> {
    this.#gather(chunk);
    if (this.#gatheredBytes < this.#partBytes) return undefined;
    await this.#sending;
    const durable = this.#state;
    this.#sending = this.#sendPart();
    // The next await reports a failure; until then it must not count as an unhandled rejection.
    this.#sending.catch(() => {});
    const isNews = durable.size > this.#reportedSize;
    this.#reportedSize = durable.size;
    return isNews ? durable : undefined;
  }

  async flush(): Promise<PartialState> {
    await this.#sending;
    this.#sending = undefined;
    if (this.#gatheredBytes === 0) return this.#state;
    if (this.#state.size + this.#gatheredBytes >= this.#options.sizeMax) {
      await this.#sendPart();
      return this.#state;
    }
    const { client, bucket, tailKey } = this.#place;
    const tail = Buffer.concat(this.#gathered);
    await client.send(new PutObjectCommand({ Bucket: bucket, Key: tailKey(this.#state), Body: tail }));
    return { ...this.#state, size: this.#state.size + tail.byteLength, tail: tail.byteLength };
  }

  #gather(chunk: Uint8Array): void {
    this.#gathered.push(chunk);
    this.#gatheredBytes += chunk.byteLength;
  }

  async #sendPart(): Promise<void> {
    const { client, bucket, key } = this.#place;
    const part = Buffer.concat(this.#gathered);
    this.#gathered = [];
    this.#gatheredBytes = 0;
    const place = { Bucket: bucket, Key: key };
    const { uploadId = await this.#create(), etags = [] } = this.#state;
    const { ETag } = await client.send(
      new UploadPartCommand({ ...place, UploadId: uploadId, PartNumber: etags.length + 1, Body: part }),
    );
    if (ETag === undefined) throw new Error('S3 returned no tag of a part.');
    this.#state = { size: this.#state.size + part.byteLength, uploadId, etags: [...etags, ETag] };
  }

  /** A process that dies before it is saved leaves an upload without parts, which `sweepTemporary` aborts. */
  async #create(): Promise<string> {
    const { client, bucket, key } = this.#place;
    const { UploadId } = await client.send(
      new CreateMultipartUploadCommand({ Bucket: bucket, Key: key, ContentType: this.#options.contentType }),
    );
    if (UploadId === undefined) throw new Error('S3 returned no id of a multipart upload.');
    return UploadId;
  }
}
