import { closeSync, fsync, open, write } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { createDirectories } from '../lib/directories.ts';
import { freeSingleUse } from '../lib/single-use-bytes.ts';
import { syncDirectory } from '../lib/sync-directory.ts';

/** Bytes buffered per write. A body holds about twice this in memory. */
const writeBytes = 512 * 1024;

/** Combines small chunks into few large writes, and buffers the next chunks during a write. */
export class FileWriter {
  readonly #file: FileHandle;
  #gathered: Uint8Array[] = [];
  #gatheredBytes = 0;
  #writing: Promise<void> | undefined;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async take(chunk: Uint8Array): Promise<void> {
    this.#gathered.push(chunk);
    this.#gatheredBytes += chunk.byteLength;
    if (this.#gatheredBytes < writeBytes) return;
    await this.#writing;
    this.#writing = writeWhole(this.#file, this.#gathered);
    // The next await reports a failure; until then it must not count as an unhandled rejection.
    this.#writing.catch(() => {});
    this.#gathered = [];
    this.#gatheredBytes = 0;
  }

  /** Writes what is buffered. */
  async flush(): Promise<void> {
    await this.rest();
    const left = this.#gathered;
    this.#gathered = [];
    this.#gatheredBytes = 0;
    await writeWhole(this.#file, left);
  }

  /** Waits for the write in progress. */
  async rest(): Promise<void> {
    await this.#writing;
    this.#writing = undefined;
  }
}

/** Writes all chunks, and frees those for a single use. A write may be partial, for example on an almost full disk. */
async function writeWhole(file: FileHandle, chunks: Uint8Array[]): Promise<void> {
  let left = chunks.filter((chunk) => chunk.byteLength > 0);
  while (left.length > 0) {
    let { bytesWritten } = await file.writev(left);
    while (left[0] !== undefined && bytesWritten >= left[0].byteLength) {
      bytesWritten -= left[0].byteLength;
      left = left.slice(1);
    }
    if (left[0] !== undefined && bytesWritten > 0) left = [left[0].subarray(bytesWritten), ...left.slice(1)];
  }
  for (const chunk of chunks) freeSingleUse(chunk);
}

const calls = { open: promisify(open), write: promisify(write), sync: promisify(fsync) };

/**
 * Creates a file with these bytes, durably. Each call in another thread takes longer than what a small file needs there, so
 * the file is closed here: nothing is left to write then.
 */
export async function writeNewFile(path: string, bytes: Uint8Array): Promise<void> {
  const file = await calls.open(path, 'wx', 0o600);
  try {
    for (let at = 0; at < bytes.byteLength; ) at += (await calls.write(file, bytes, at)).bytesWritten;
    await calls.sync(file);
  } finally {
    closeSync(file);
  }
  freeSingleUse(bytes);
}

/** Creates the directory and its missing parents, and syncs each new entry. */
export async function createDirectory(directory: string): Promise<void> {
  const firstCreated = createDirectories(directory, 0o700);
  if (firstCreated === undefined) return;
  for (let created = directory; ; created = dirname(created)) {
    await syncDirectory(dirname(created));
    if (created === firstCreated || created === dirname(created)) return;
  }
}

export function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
