import type { Hash } from 'node:crypto';
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';

export type BlobStat = { size: number };

/** What `put` kept: its size in bytes and the SHA-256 of its bytes in lower-case hex. */
export type StoredBlob = { key: string; size: number; checksum: string };

/** A run of bytes: `start` counts from 0, `end` is the first byte that is no longer meant. */
export type ByteRange = { start: number; end: number };

export type BlobEntry = { key: string; size: number; modifiedAt: Date };

export type PutOptions = {
  contentType: string;
  /** More bytes than this: BlobTooLarge. */
  sizeMax?: number;
  /** The SHA-256 in hex that the bytes must have; another: BlobChecksumMismatch. */
  checksum?: string;
};

export type PresignOptions = {
  expiresSeconds: number;
  contentType: string;
  /** The header value, already safe. */
  contentDisposition: string;
};

/**
 * Where the bytes of files are kept. Keys are made by us alone (`<app uuid>/<uuid>`), never from a caller's text, and
 * are written once: nothing here changes a blob in place.
 */
export type BlobStore = {
  readonly kind: 'disk' | 's3';
  /**
   * Keeps the bytes durably and whole, or not at all, using the same memory for any size. Whatever `body` throws comes
   * out as it is. Throws BlobTooLarge and BlobChecksumMismatch.
   */
  put(key: string, body: Uint8Array | AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredBlob>;
  /** The bytes as a stream; whoever asks must read it or destroy it. Throws BlobMissing. */
  read(key: string, range?: ByteRange): Promise<Readable>;
  /** All bytes in memory. Throws BlobMissing, and BlobTooLarge over `sizeMax` bytes. */
  readAll(key: string, sizeMax: number): Promise<Uint8Array>;
  stat(key: string): Promise<BlobStat | undefined>;
  /** A blob that is not there is removed already. */
  remove(key: string): Promise<void>;
  /** Every whole blob whose key begins with `prefix`, in no order; not the one that says which store this is. */
  list(prefix?: string): AsyncIterable<BlobEntry>;
  /** A URL that needs no credential and works until it expires. Only stores that clients can reach have it. */
  presignedUrl?(key: string, options: PresignOptions): Promise<string>;
  /** Removes what interrupted writes left that nobody touched for `olderThanMs`. Returns how many. */
  sweepTemporary(olderThanMs: number): Promise<number>;
  close(): Promise<void>;
};

export class BlobMissing extends Error {
  constructor(key: string, cause?: unknown) {
    super(`There is no blob ${key}.`, { cause });
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

/** Counts and hashes bytes on their way to a store, and judges them at the end. */
export class BlobMeter {
  readonly #key: string;
  readonly #options: PutOptions;
  readonly #hash: Hash = createHash('sha256');
  #size = 0;

  constructor(key: string, options: PutOptions) {
    this.#key = key;
    this.#options = options;
  }

  /** Throws BlobTooLarge as soon as one byte too many has come. */
  take(chunk: Uint8Array): void {
    this.#size += chunk.byteLength;
    const { sizeMax } = this.#options;
    if (sizeMax !== undefined && this.#size > sizeMax) throw new BlobTooLarge(this.#key, sizeMax);
    this.#hash.update(chunk);
  }

  /** What was taken. Throws BlobChecksumMismatch. */
  finish(): StoredBlob {
    const checksum = this.#hash.digest('hex');
    const expected = this.#options.checksum?.toLowerCase();
    if (expected !== undefined && expected !== checksum) throw new BlobChecksumMismatch(this.#key, expected, checksum);
    return { key: this.#key, size: this.#size, checksum };
  }
}

/** The blob that says which store this is (files/store-identity.ts). It is no file's, and lists leave it out. */
export const identityKey = 'quarry/store';

/** Keys name places in a store, so one that we did not make is a mistake of ours, found here before it is a path. */
export function assertBlobKey(key: string): void {
  if (!/^[A-Za-z0-9-]+\/[A-Za-z0-9-]+$/.test(key)) throw new Error(`Not a blob key: ${JSON.stringify(key)}`);
}
