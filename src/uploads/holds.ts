import { createHash, type Hash } from 'node:crypto';
import type { Db } from '../db/database.ts';
import { AppError } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import * as store from './store.ts';

/** The number of uploads whose hash is kept between two requests. */
const hashesMax = 256;
/** How often, and how many times, a release that failed is tried again. */
const releaseEveryMs = 3_000;
const releaseTriesMax = 100;

/**
 * The uploads that this process appends to. Across all processes, only one request holds an upload. What a dead
 * process held is free as soon as the database drops its session.
 */
export class UploadHolds {
  readonly #db: Db;
  readonly #session: Db;
  readonly #holder = newUuid();
  readonly #held = new Set<string>();

  /** @param session a direct connection that stays open: it shows others that this process is alive */
  constructor(db: Db, session: Db) {
    this.#db = db;
    this.#session = session;
  }

  get holder(): string {
    return this.#holder;
  }

  /** Runs work with the upload's current row while this process holds the upload. 423 if another request holds it. */
  async hold<T>(upload: store.UploadRow, work: (current: store.UploadRow) => Promise<T>): Promise<T> {
    const { id } = upload;
    if (this.#held.has(id)) throw locked();
    this.#held.add(id);
    try {
      const current = await this.#take(upload);
      if (current === undefined) throw locked();
      return await this.#release(upload, () => work(current));
    } finally {
      this.#held.delete(id);
    }
  }

  /** Like `hold`, for an upload that `insert` creates with this process as its holder. */
  async holdNew<T>(insert: () => Promise<store.UploadRow>, work: (current: store.UploadRow) => Promise<T>): Promise<T> {
    await store.showHolder(this.#session, this.#holder);
    const upload = await insert();
    this.#held.add(upload.id);
    try {
      return await this.#release(upload, () => work(upload));
    } finally {
      this.#held.delete(upload.id);
    }
  }

  async #take(upload: store.UploadRow): Promise<store.UploadRow | undefined> {
    try {
      return await store.holdUpload(this.#session, upload, this.#holder);
    } catch (error) {
      // The database may have held it, or may still do so.
      this.#releaseLater(upload);
      throw error;
    }
  }

  async #release<T>(upload: store.UploadRow, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } finally {
      await store.releaseUpload(this.#db, upload, this.#holder).catch(() => this.#releaseLater(upload));
    }
  }

  /** Other processes cannot hold what is in the name of this one as long as it lives. */
  #releaseLater(upload: store.UploadRow, tries = 1): void {
    const release = async () => {
      // A request that holds it again releases it.
      if (this.#held.has(upload.id)) return;
      await store.releaseUpload(this.#db, upload, this.#holder).catch(() => {
        if (tries < releaseTriesMax) this.#releaseLater(upload, tries + 1);
      });
    };
    setTimeout(() => void release(), releaseEveryMs).unref();
  }
}

function locked(): AppError {
  return new AppError('locked', 'Another request is working on this upload. Try again when that request has ended.', {
    headers: { 'retry-after': '1' },
  });
}

/**
 * The hashes of the bytes that this process has received. An upload that another process continued has none: its file
 * is read once at the end.
 */
export class RunningHashes {
  readonly #hashes = new Map<string, { size: number; hash: Hash }>();

  /** Removes and returns the hash of an upload's stored bytes. */
  take({ id, received }: store.UploadRow): RunningHash | undefined {
    const kept = this.#hashes.get(id);
    this.#hashes.delete(id);
    if (received === 0) return { size: 0, hash: createHash('sha256') };
    return kept?.size === received ? kept : undefined;
  }

  /** Keeps the hash for the next request if it covers exactly the stored bytes. */
  keep(id: string, stored: number, running: RunningHash | undefined): void {
    if (running?.size !== stored) return;
    this.#hashes.set(id, running);
    for (const oldest of this.#hashes.keys()) {
      if (this.#hashes.size <= hashesMax) break;
      this.#hashes.delete(oldest);
    }
  }
}

type RunningHash = { size: number; hash: Hash };

export async function* hashBody(
  body: AsyncIterable<Uint8Array>,
  running: RunningHash | undefined,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    if (running !== undefined) {
      running.hash.update(chunk);
      running.size += chunk.byteLength;
    }
    yield chunk;
  }
}
