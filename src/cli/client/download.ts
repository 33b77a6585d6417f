import { open, rm } from 'node:fs/promises';
import { UsageError } from '../errors.ts';
import type { StoredFile } from './local-file.ts';
import { findId } from './names.ts';
import { describeTransfer } from './progress.ts';
import type { Session } from './session.ts';

export type DownloadOptions = { out?: string };

/** `quarry files download <file>`: writes it to a file of its name, to `--out`, or with `--out -` to standard output. */
export async function download(session: Session, named: string, { out }: DownloadOptions): Promise<number> {
  const { client } = session;
  const id = await findId(client, 'file', named);
  const file = await client.send<StoredFile>('GET', `/files/${encodeURIComponent(id)}`);
  const bytes = await client.download(file.url);
  // A filename from the server must not escape this directory.
  const path = out ?? file.filename.replaceAll(/[/\\\p{Cc}]/gu, '-').replace(/^\.+$/, 'file');
  await receive(session, file.filename, bytes, { path, size: file.size });
  return 0;
}

/** Writes what arrives to a new file, or with the path `-` to standard output, and shows its progress. */
export async function receive(
  session: Session,
  name: string,
  bytes: AsyncIterable<Uint8Array>,
  { path, size }: { path: string; size?: number },
): Promise<void> {
  let received = 0;
  const started = performance.now();
  async function* counted() {
    for await (const chunk of bytes) {
      received += chunk.length;
      const transfer = describeTransfer(received, size, performance.now() - started);
      session.progress.show(`${name} ${transfer}`, size ? received / size : undefined);
      yield chunk;
    }
  }
  if (path === '-') for await (const chunk of counted()) await session.print(chunk);
  else {
    await writeWhole(path, counted());
    session.say(`${path}  ${describeTransfer(received, size ?? received, 0)}`);
  }
}

/** Writes a new file. Throws UsageError if it exists, and deletes it when writing fails. */
export async function writeWhole(
  path: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  const file = await open(path, 'wx').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(error.code === 'EEXIST' ? `${path} already exists.` : `${path} cannot be written.`);
  });
  try {
    for await (const chunk of chunks) await file.writeFile(chunk);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}
