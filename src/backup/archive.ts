import { existsSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BlobStore } from '../blob/blob-store.ts';
import { openDiskBlobStore } from '../blob/disk.ts';
import { createDirectories } from '../lib/directories.ts';
import { syncDirectory } from '../lib/sync-directory.ts';
import { BackupError } from './error.ts';

/** One entry of the list of blobs: key, size in bytes, and SHA-256 in hex. */
export type ListedBlob = { key: string; size: number; sha256: string };

/** Where one backup is: a directory, or objects in a bucket. */
export type Archive = {
  /** The place, for messages. */
  readonly name: string;
  /** Writes one file durably. Throws if it exists. */
  write(name: string, bytes: Uint8Array): Promise<void>;
  /** Undefined when there is no such file. Throws BackupError when it cannot be decrypted. */
  read(name: string): Promise<Buffer | undefined>;
  /** Opens the file contents, to write them or to read them. */
  openBlobs(mode: 'write' | 'read'): Promise<ArchivedBlobs>;
  /** Makes all files durable. Called after the last one is written. */
  sync(): Promise<void>;
};

export type ArchivedBlobs = {
  store: Pick<BlobStore, 'put' | 'read' | 'stat'>;
  /** Whether an earlier backup has written this blob. */
  isThere?: (blob: ListedBlob) => Promise<boolean>;
  close(): Promise<void>;
};

/** A backup in a directory, readable only by its owner. */
export function openDirectory(directory: string): Archive {
  const blobsPath = join(directory, 'blobs');
  return {
    name: directory,
    async write(name, bytes) {
      const path = join(directory, name);
      createDirectories(dirname(path), 0o700);
      const file = await open(path, 'wx', 0o600);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
    },
    async read(name) {
      try {
        return await readFile(join(directory, name));
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
        throw new BackupError(`${name} cannot be read: ${String(error)}`);
      }
    },
    async openBlobs(mode) {
      // Opening a store creates its directory, but a backup is only read.
      if (mode === 'read' && !existsSync(blobsPath)) throw new BackupError(`${blobsPath} is missing.`);
      const store = await openDiskBlobStore(blobsPath);
      return { store, close: () => store.close() };
    },
    sync: () => syncDirectory(directory),
  };
}
