import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../lib/sync-directory.ts';
import { appendBody, type PartialWriter } from './append.ts';
import { assertBlobKey, BlobMissing, type BlobStat, type PartialBlobs, type PartialState } from './blob-store.ts';
import { createDirectory, FileWriter, isAbsent } from './disk-files.ts';

/** The directory of partial blobs, beside those of the apps. */
export const partialDirectory = 'partial';

/** A body is saved after this time or this many bytes. Saving costs a sync and a transaction. */
const saveEveryMs = 5_000;
const saveEveryBytes = 32 * 1024 * 1024;

/**
 * Partial blobs as files that grow, each renamed to its final name when it is complete: no byte is written twice.
 * @param move renames a file to the final name of a key, durably.
 */
export function diskPartials(
  root: string,
  move: (path: string, key: string) => Promise<void>,
  findComplete: (key: string) => Promise<BlobStat | undefined>,
): PartialBlobs {
  const directory = join(root, partialDirectory);
  const pathOf = (key: string) => {
    assertBlobKey(key);
    return join(directory, key.replace('/', '_'));
  };
  return {
    async append(key, state, body, options) {
      const file = await openToAppend(directory, pathOf(key), key, state);
      const writer = new DiskPartialWriter(file, state.size);
      try {
        return await appendBody(writer, body, options);
      } finally {
        await writer.rest().catch(() => {});
        await file.close();
      }
    },
    async complete(key, { size }) {
      try {
        await move(pathOf(key), key);
      } catch (error) {
        if (!isAbsent(error)) throw error;
        if ((await findComplete(key))?.size !== size) throw new BlobMissing(key, error);
      }
    },
    remove: (key) => rm(pathOf(key), { force: true }),
  };
}

/** The key of a file in the directory of partial blobs. */
export function partialKey(name: string): string {
  return name.replace('_', '/');
}

/** Opens the file and truncates it to the saved bytes: a process that died may have left more. Throws BlobMissing. */
async function openToAppend(directory: string, path: string, key: string, { size }: PartialState): Promise<FileHandle> {
  if (size === 0) await createDirectory(directory);
  let file: FileHandle;
  try {
    file = await open(path, size === 0 ? 'a' : constants.O_WRONLY | constants.O_APPEND, 0o600);
  } catch (error) {
    if (isAbsent(error)) throw new BlobMissing(key, error);
    throw error;
  }
  try {
    if ((await file.stat()).size < size) throw new BlobMissing(key);
    await file.truncate(size);
    if (size === 0) await syncDirectory(directory);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

class DiskPartialWriter implements PartialWriter {
  readonly #file: FileHandle;
  readonly #writer: FileWriter;
  #size: number;
  #savedSize: number;
  #savedAt = performance.now();

  constructor(file: FileHandle, size: number) {
    this.#file = file;
    this.#writer = new FileWriter(file);
    this.#size = size;
    this.#savedSize = size;
  }

  async take(chunk: Uint8Array): Promise<PartialState | undefined> {
    this.#size += chunk.byteLength;
    await this.#writer.take(chunk);
    const isDue = this.#size - this.#savedSize >= saveEveryBytes || performance.now() - this.#savedAt >= saveEveryMs;
    return isDue ? this.flush() : undefined;
  }

  async flush(): Promise<PartialState> {
    await this.#writer.flush();
    await this.#file.sync();
    this.#savedSize = this.#size;
    this.#savedAt = performance.now();
    return { size: this.#size };
  }

  rest(): Promise<void> {
    return this.#writer.rest();
  }
}
