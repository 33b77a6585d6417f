import { createHash, type Hash } from 'node:crypto';
import type { Readable } from 'node:stream';

export type BlobStat = { size: number };

/**
 * What is durable of a blob that arrives in several requests. The caller keeps it, as JSON: it is all that another
 * process needs to continue.
 */
export type PartialState = {
  size: number;
  /** S3: the multipart upload, the tags of its parts, and the bytes after them that are too few for a part. */
  uploadId?: string;
  etags?: string[];
  tail?: number;
};

export type AppendOptions = {
  contentType: string;
  /** The size of the whole blob. */
  sizeMax: number;
  /** Records what has become durable. When it fails, appending ends with its error. */
  save(state: PartialState): Promise<void>;
  /** Saves only at the end of the body, and nothing of a body that fails. */
  whole?: boolean;
};

/**
 * Blobs that arrive in several requests. No other method of the store knows them until they are complete. Only one
 * process may append to a blob at a time; bytes beyond the saved state are overwritten.
 */
export type PartialBlobs = {
  /** Appends the body and saves what is durable: from time to time, at the end, and when the body breaks off. */
  append(
    key: string,
    state: PartialState,
    body: AsyncIterable<Uint8Array>,
    options: AppendOptions,
  ): Promise<PartialState>;
  /** Makes all appended bytes a blob. May be repeated. Throws BlobMissing. */
  complete(key: string, state: PartialState, contentType: string): Promise<void>;
  /** Deletes everything that is stored for it, except the complete blob. May be repeated. */
  remove(key: string, state: PartialState): Promise<void>;
};

/** A blob stored by `put`: its size in bytes and its SHA-256 in lower-case hex. */
export type StoredBlob = { key: string; size: number; checksum: string };

/** A range of bytes: `start` counts from 0, `end` is exclusive. */
export type ByteRange = { start: number; end: number };

export type BlobEntry = { key: string; size: number; modifiedAt: Date };

export type PutOptions = {
  contentType: string;
  /** More bytes throw BlobTooLarge. */
  sizeMax?: number;
  /** The expected SHA-256 in hex. Any other throws BlobChecksumMismatch. */
  checksum?: string;
};

export type PresignOptions = {
  expiresSeconds: number;
  contentType: string;
  /** The header value, already escaped. */
  contentDisposition: string;
};

/**
 * Stores the bytes of files. Keys are generated (`<app uuid>/<uuid>`), never built from a caller's text, and written
 * once: nothing changes a blob in place.
 */
export type BlobStore = {
  readonly kind: 'disk' | 's3';
  /**
   * Stores all bytes durably, or nothing, with the same memory for any size. Errors of `body` are thrown unchanged.
   * Throws BlobTooLarge and BlobChecksumMismatch.
   */
  put(key: string, body: Uint8Array | AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredBlob>;
  /** The bytes as a stream, which the caller must read or destroy. Throws BlobMissing. */
  read(key: string, range?: ByteRange): Promise<Readable>;
  /** Reads all bytes into memory. Throws BlobMissing, and BlobTooLarge over `sizeMax` bytes. */
  readAll(key: string, sizeMax: number): Promise<Uint8Array>;
  stat(key: string): Promise<BlobStat | undefined>;
  /** Succeeds when the blob does not exist. */
  remove(key: string): Promise<void>;
  /** Every complete blob whose key begins with `prefix`, in no order, without the one that identifies the store. */
  list(prefix?: string): AsyncIterable<BlobEntry>;
  /** A URL that needs no credential and works until it expires. Only stores that clients can reach offer it. */
  presignedUrl?(key: string, options: PresignOptions): Promise<string>;
  /**
   * Deletes remains of interrupted writes not touched for `olderThanMs`, except those of partial blobs that `isKept`
   * names. Returns how many.
   */
  sweepTemporary(olderThanMs: number, isKept?: (key: string) => Promise<boolean>): Promise<number>;
  readonly partials: PartialBlobs;
  close(): Promise<void>;
};

export class BlobMissing extends Error {
  constructor(key: string, cause?: unknown) {
    super(`The blob ${key} does not exist.`, { cause });
    this.name = 'BlobMissing';
  }
}

export class BlobTooLarge extends Error {
  readonly sizeMax: number;

  constructor(key: string, sizeMax: number) {
    super(`The blob ${key} has more than ${sizeMax} bytes.`);
    this.name = 'BlobTooLarge';
    this.sizeMax = sizeMax;
  }
}

export class BlobChecksumMismatch extends Error {
  readonly expected: string;
  readonly actual: string;

  constructor(key: string, expected: string, actual: string) {
    super(`The blob ${key} has the checksum ${actual} instead of ${expected}.`);
    this.name = 'BlobChecksumMismatch';
    this.expected = expected;
    this.actual = actual;
  }
}

/** Counts and hashes bytes while they are written, and checks them at the end. */
export class BlobMeter {
  readonly #key: string;
  readonly #options: PutOptions;
  readonly #hash: Hash = createHash('sha256');
  #size = 0;

  constructor(key: string, options: PutOptions) {
    this.#key = key;
    this.#options = options;
  }

  /** Throws BlobTooLarge at the first byte over the limit. */
  take(chunk: Uint8Array): void {
    this.#size += chunk.byteLength;
    const { sizeMax } = this.#options;
    if (sizeMax !== undefined && this.#size > sizeMax) throw new BlobTooLarge(this.#key, sizeMax);
    this.#hash.update(chunk);
  }

  /** The size and checksum. Throws BlobChecksumMismatch. */
  finish(): StoredBlob {
    const checksum = this.#hash.digest('hex');
    const expected = this.#options.checksum?.toLowerCase();
    if (expected !== undefined && expected !== checksum) throw new BlobChecksumMismatch(this.#key, expected, checksum);
    return { key: this.#key, size: this.#size, checksum };
  }
}

/** The blob that identifies the store (files/store-identity.ts). It belongs to no file, and lists omit it. */
export const identityKey = 'quarry/store';

/** Keys become paths. A malformed key is a bug, caught here before it reaches the store. */
export function assertBlobKey(key: string): void {
  if (!/^[A-Za-z0-9-]+\/[A-Za-z0-9-]+$/.test(key)) throw new Error(`Not a blob key: ${JSON.stringify(key)}`);
}
