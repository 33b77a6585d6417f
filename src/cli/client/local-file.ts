import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename, extname, resolve } from 'node:path';
import { UsageError } from '../errors.ts';
import { describeTransfer, formatBytes } from './progress.ts';
import { uploadResumably } from './resumable.ts';
import type { Session } from './session.ts';

export type LocalFile = {
  name: string;
  contentType: string;
  /** Undefined for standard input. */
  bytes: number | undefined;
  /** The contents, read on demand. */
  read(start?: number): AsyncIterable<Uint8Array>;
  /** Where it is on disk, and when it was last changed; undefined for standard input. */
  source: { path: string; modifiedMs: number } | undefined;
};

/** Files of at least this size are uploaded resumably: a broken connection does not restart them. */
const resumableBytesMin = 32 * 1024 * 1024;

export type StoredFile = { id: string; filename: string; content_type: string; size: number; url: string };

/** Finds a local file; `-` is standard input. Throws UsageError when it cannot be read. */
export async function findLocalFile(path: string, given: { name?: string; type?: string } = {}): Promise<LocalFile> {
  if (path === '-') {
    const name = given.name ?? 'stdin.txt';
    const contentType = given.type ?? contentTypeOf(name);
    return { name, contentType, bytes: undefined, read: () => process.stdin, source: undefined };
  }
  const name = given.name ?? basename(path);
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new UsageError(`${path} is not a file.`);
    // An unreadable file is a usage error, not a failure in the middle of a request.
    await (await open(path)).close();
    const read = (start = 0) => createReadStream(path, { start, highWaterMark: 256 * 1024 });
    const source = { path: resolve(path), modifiedMs: found.mtimeMs };
    return { name, contentType: given.type ?? contentTypeOf(name), bytes: found.size, read, source };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new UsageError(`The file ${path} does not exist.`);
    if (code === 'EACCES') throw new UsageError(`${path} is not readable by this user.`);
    throw error;
  }
}

/** Uploads a file as a stream and shows progress. Returns the stored file. */
export async function uploadLocalFile(
  session: Session,
  file: LocalFile,
  query: Record<string, string | undefined> = {},
): Promise<StoredFile> {
  const { client, progress } = session;
  const started = performance.now();
  const show = (sent: number) => {
    const transfer = describeTransfer(sent, file.bytes, performance.now() - started);
    progress.show(`${file.name} ${transfer}`, file.bytes ? sent / file.bytes : undefined);
  };
  async function* counted() {
    let sent = 0;
    for await (const chunk of file.read()) {
      sent += chunk.length;
      show(sent);
      yield chunk;
    }
  }
  const { source, bytes } = file;
  try {
    if (source !== undefined && bytes !== undefined && bytes >= resumableBytesMin) {
      const id = await uploadResumably(session, { ...file, ...source, bytes }, query, show);
      return await client.send<StoredFile>('GET', `/files/${id}`);
    }
    return await client.upload<StoredFile>('/files/uploads', {
      query,
      headers: { 'content-type': file.contentType, 'x-filename': encodeURIComponent(file.name) },
      body: counted(),
      bytes,
    });
  } finally {
    progress.clear();
  }
}

/** Reads a file or standard input, up to a limit. */
export async function readAll(file: LocalFile, bytesMax: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of file.read()) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new UsageError(`${file.name} has more than ${formatBytes(bytesMax)}.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function contentTypeOf(name: string): string {
  return contentTypes[extname(name).slice(1).toLowerCase()] ?? 'application/octet-stream';
}

/** Common extensions. The server inspects the bytes anyway. */
const contentTypes: Record<string, string> = {
  bmp: 'image/bmp',
  csv: 'text/csv',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  eml: 'message/rfc822',
  epub: 'application/epub+zip',
  gif: 'image/gif',
  htm: 'text/html',
  html: 'text/html',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  json: 'application/json',
  md: 'text/markdown',
  msg: 'application/vnd.ms-outlook',
  odp: 'application/vnd.oasis.opendocument.presentation',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  odt: 'application/vnd.oasis.opendocument.text',
  pdf: 'application/pdf',
  png: 'image/png',
  ppt: 'application/vnd.ms-powerpoint',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  rtf: 'application/rtf',
  svg: 'image/svg+xml',
  tif: 'image/tiff',
  tiff: 'image/tiff',
  tsv: 'text/tab-separated-values',
  txt: 'text/plain',
  webp: 'image/webp',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xml: 'application/xml',
};
