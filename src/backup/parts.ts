import { createHash } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gunzip, gzip } from 'node:zlib';
import { BackupError } from './error.ts';
import type { Part } from './manifest.ts';

const compress = promisify(gzip);
const decompress = promisify(gunzip);
/** Rows are buffered up to this size and then written as one file, so that memory does not grow with the table. */
const partBytes = 8 * 1024 * 1024;
/** A part holds at least one row; no row is nearly this long. */
const partBytesMax = 1024 * 1024 * 1024;
const newline = 10;

/** Writes rows as text, one per line, into numbered gzip files. */
export class PartWriter {
  readonly #directory: string;
  readonly #prefix: string;
  readonly #parts: Part[] = [];
  #gathered: Buffer[] = [];
  #bytes = 0;
  #rows = 0;

  /** Files are named `<prefix>.0001.gz` and so on, below the directory. */
  constructor(directory: string, prefix: string) {
    this.#directory = directory;
    this.#prefix = prefix;
  }

  /** @param rows lines with their line ends; the last line may continue in the next call. */
  async write(rows: Buffer): Promise<void> {
    this.#gathered.push(rows);
    this.#bytes += rows.length;
    const end = rows.lastIndexOf(newline) + 1;
    if (this.#bytes < partBytes || end === 0) return;
    // A part ends at the end of a row.
    const rest = rows.subarray(end);
    this.#gathered[this.#gathered.length - 1] = rows.subarray(0, end);
    await this.#flush();
    this.#gathered = [rest];
    this.#bytes = rest.length;
  }

  async finish(): Promise<{ rows: number; parts: Part[] }> {
    if (this.#bytes > 0) await this.#flush();
    return { rows: this.#rows, parts: this.#parts };
  }

  async #flush(): Promise<void> {
    const plain = Buffer.concat(this.#gathered);
    this.#gathered = [];
    this.#bytes = 0;
    if (plain.at(-1) !== newline) throw new Error('A part would end within a row.');
    this.#rows += countRows(plain);
    const number = String(this.#parts.length + 1).padStart(4, '0');
    const bytes = await compress(plain, { level: constants.Z_BEST_SPEED });
    this.#parts.push(await writePart(this.#directory, `${this.#prefix}.${number}.gz`, bytes));
  }
}

/** Writes one file of the archive durably, readable only by its owner. */
export async function writePart(directory: string, name: string, bytes: Uint8Array): Promise<Part> {
  const path = join(directory, name);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  return { name, bytes: bytes.byteLength, sha256: createHash('sha256').update(bytes).digest('hex') };
}

/** The file's bytes. Throws BackupError when they do not match the manifest. */
export async function readPart(directory: string, part: Part): Promise<Buffer> {
  const bytes = await readFile(join(directory, part.name)).catch((error: unknown) => {
    throw new BackupError(`${part.name} cannot be read: ${String(error)}`);
  });
  if (bytes.length !== part.bytes || createHash('sha256').update(bytes).digest('hex') !== part.sha256)
    throw new BackupError(`${part.name} is damaged: it does not match the manifest.`);
  return bytes;
}

/** The rows of these parts, one part at a time. Throws BackupError at the first damaged part. */
export async function* readRows(directory: string, parts: readonly Part[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield await decompress(await readPart(directory, part), { maxOutputLength: partBytesMax });
}

export function countRows(rows: Buffer): number {
  let count = 0;
  for (let at = rows.indexOf(newline); at >= 0; at = rows.indexOf(newline, at + 1)) count += 1;
  return count;
}

/** One entry of the list of blobs: key, size in bytes, and SHA-256 in hex. */
export type ListedBlob = { key: string; size: number; sha256: string };

export async function* readBlobList(directory: string, parts: readonly Part[]): AsyncGenerator<ListedBlob> {
  for await (const rows of readRows(directory, parts))
    for (const line of rows.toString('utf8').split('\n')) {
      if (line === '') continue;
      const [key = '', size = '', sha256 = ''] = line.split('\t');
      yield { key, size: Number(size), sha256 };
    }
}
