import { randomUUID } from 'node:crypto';
import { type FileHandle, open, opendir, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { systemClock } from '../lib/clock.ts';
import { syncDirectory } from '../lib/sync-directory.ts';
import {
  assertBlobKey,
  type BlobEntry,
  BlobMeter,
  BlobMissing,
  type BlobStat,
  type BlobStore,
  BlobTooLarge,
  type ByteRange,
  identityKey,
  type PutOptions,
  type StoredBlob,
} from './blob-store.ts';
import { createDirectory, FileWriter, isAbsent, writeNewFile } from './disk-files.ts';
import { diskPartials, partialDirectory, partialKey } from './disk-partials.ts';

/** Bytes per read. A download that its client does not read holds two of them; smaller reads take more processor time. */
const readBytes = 128 * 1024;

/**
 * Blobs as files below one directory: `<app>/<last two characters of the name>/<name>`, so that no directory holds all
 * files of an app. Bytes are written to a file in `tmp/`, synced, and only then renamed: a file under its final name is
 * always complete.
 */
export async function openDiskBlobStore(root: string): Promise<BlobStore> {
  const temporary = join(root, 'tmp');
  await createDirectory(temporary);
  return {
    kind: 'disk',
    put: (key, body, options) => put(root, temporary, key, body, options),
    read: (key, range) => read(pathOf(root, key), key, range),
    readAll: (key, sizeMax) => readAll(pathOf(root, key), key, sizeMax),
    stat: (key) => findStat(pathOf(root, key)),
    remove: (key) => remove(pathOf(root, key)),
    list: (prefix = '') => list(root, prefix),
    async sweepTemporary(olderThanMs, isKept = async () => false) {
      const partials = join(root, partialDirectory);
      const removed = await sweep(temporary, olderThanMs, async () => false);
      return removed + (await sweep(partials, olderThanMs, (name) => isKept(partialKey(name))));
    },
    partials: diskPartials(
      root,
      (partial, key) => moveTo(partial, pathOf(root, key)),
      (key) => findStat(pathOf(root, key)),
    ),
    close: async () => {},
  };
}

function pathOf(root: string, key: string): string {
  assertBlobKey(key);
  const slash = key.indexOf('/');
  const name = key.slice(slash + 1);
  return join(root, key.slice(0, slash), shardOf(name), name);
}

/** A UUIDv7 begins with the time and ends with random characters. */
function shardOf(name: string): string {
  return name.slice(-2);
}

async function put(
  root: string,
  temporary: string,
  key: string,
  body: Uint8Array | AsyncIterable<Uint8Array>,
  options: PutOptions,
): Promise<StoredBlob> {
  const path = pathOf(root, key);
  const meter = new BlobMeter(key, options);
  const unfinished = join(temporary, randomUUID());
  try {
    if (body instanceof Uint8Array) {
      meter.take(body);
      await writeNewFile(unfinished, body);
    } else await writeStream(unfinished, body, meter);
    const stored = meter.finish();
    await moveTo(unfinished, path);
    return stored;
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

/** Renames the file to its final name, durably. Creates the directory only if it is missing: most exist. */
async function moveTo(unfinished: string, path: string): Promise<void> {
  const directory = dirname(path);
  try {
    await rename(unfinished, path);
  } catch (error) {
    if (!isAbsent(error)) throw error;
    await createDirectory(directory);
    await rename(unfinished, path);
  }
  await syncDirectory(directory);
}

async function writeStream(path: string, body: AsyncIterable<Uint8Array>, meter: BlobMeter): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await writeChunks(file, body, meter);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function writeChunks(file: FileHandle, body: AsyncIterable<Uint8Array>, meter: BlobMeter): Promise<void> {
  const writer = new FileWriter(file);
  try {
    for await (const chunk of body) {
      meter.take(chunk);
      await writer.take(chunk);
    }
  } catch (error) {
    // The file must not be closed during a write, even if the body failed.
    await writer.rest();
    throw error;
  }
  await writer.flush();
}

async function read(path: string, key: string, range: ByteRange | undefined): Promise<Readable> {
  const file = await openToRead(path, key);
  if (range === undefined) return file.createReadStream({ highWaterMark: readBytes });
  if (range.end <= range.start) {
    await file.close();
    return Readable.from([]);
  }
  const part = { start: range.start, end: range.end - 1 };
  return file.createReadStream({ ...part, highWaterMark: readBytes });
}

async function readAll(path: string, key: string, sizeMax: number): Promise<Uint8Array> {
  const file = await openToRead(path, key);
  try {
    const { size } = await file.stat();
    if (size > sizeMax) throw new BlobTooLarge(key, sizeMax);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

async function openToRead(path: string, key: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (isAbsent(error)) throw new BlobMissing(key, error);
    throw error;
  }
}

async function findStat(path: string): Promise<BlobStat | undefined> {
  try {
    return { size: (await stat(path)).size };
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

async function remove(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (isAbsent(error)) return;
    throw error;
  }
}

async function* list(root: string, prefix: string): AsyncGenerator<BlobEntry> {
  const slash = prefix.indexOf('/');
  for await (const app of namesIn(root)) {
    if (app === 'tmp' || app === partialDirectory) continue;
    if (slash < 0 ? !app.startsWith(prefix) : app !== prefix.slice(0, slash)) continue;
    for await (const shard of namesIn(join(root, app)))
      for await (const name of namesIn(join(root, app, shard))) {
        const key = `${app}/${name}`;
        if (!key.startsWith(prefix) || key === identityKey) continue;
        const found = await findTimes(join(root, app, shard, name));
        if (found !== undefined) yield { key, ...found };
      }
  }
}

async function sweep(
  directory: string,
  olderThanMs: number,
  isKept: (name: string) => Promise<boolean>,
): Promise<number> {
  let removed = 0;
  for await (const name of namesIn(directory)) {
    const path = join(directory, name);
    const found = await findTimes(path);
    if (found === undefined || systemClock.now().getTime() - found.modifiedAt.getTime() < olderThanMs) continue;
    if (await isKept(name)) continue;
    await remove(path);
    removed += 1;
  }
  return removed;
}

async function findTimes(path: string): Promise<{ size: number; modifiedAt: Date } | undefined> {
  try {
    const { size, mtime } = await stat(path);
    return { size, modifiedAt: mtime };
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

async function* namesIn(directory: string): AsyncGenerator<string> {
  try {
    for await (const entry of await opendir(directory)) yield entry.name;
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}
