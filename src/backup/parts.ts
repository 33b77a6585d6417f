import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, gunzip, gzip } from 'node:zlib';
import type { Archive, ListedBlob } from './archive.ts';
import { BackupError } from './error.ts';
import type { Part } from './manifest.ts';

const compress = promisify(gzip);
const decompress = promisify(gunzip);
/** Rows are buffered up to this size and then written as one file, so that memory does not grow with the table. */
const partBytes = 8 * 1024 * 1024;
/** A part holds at least one row. No row comes close to this length. */
const partBytesMax = 1024 * 1024 * 1024;
const newline = 10;

/** Writes rows as text, one per line, into numbered gzip files. */
export class PartWriter {
  readonly #archive: Archive;
  readonly #prefix: string;
  readonly #parts: Part[] = [];
  #gathered: Buffer[] = [];
  #bytes = 0;
  #rows = 0;

  /** Files are named `<prefix>.0001.gz` and so on. */
  constructor(archive: Archive, prefix: string) {
    this.#archive = archive;
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
    this.#parts.push(await writePart(this.#archive, `${this.#prefix}.${number}.gz`, bytes));
  }
}

/** Writes one file of the archive. */
export async function writePart(archive: Archive, name: string, bytes: Uint8Array): Promise<Part> {
  await archive.write(name, bytes);
  return { name, bytes: bytes.byteLength, sha256: hash('sha256', bytes) };
}

/** The file's bytes. Throws BackupError when they do not match the manifest. */
export async function readPart(archive: Archive, part: Part): Promise<Buffer> {
  const bytes = await archive.read(part.name);
  if (bytes === undefined) throw new BackupError(`${part.name} is missing.`);
  if (bytes.length !== part.bytes || hash('sha256', bytes) !== part.sha256)
    throw new BackupError(`${part.name} is damaged: it does not match the manifest.`);
  return bytes;
}

/** The rows of these parts, one part at a time. Throws BackupError at the first damaged part. */
export async function* readRows(archive: Archive, parts: readonly Part[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield await decompress(await readPart(archive, part), { maxOutputLength: partBytesMax });
}

export function countRows(rows: Buffer): number {
  let count = 0;
  for (let at = rows.indexOf(newline); at >= 0; at = rows.indexOf(newline, at + 1)) count += 1;
  return count;
}

export async function* readBlobList(archive: Archive, parts: readonly Part[]): AsyncGenerator<ListedBlob> {
  for await (const rows of readRows(archive, parts))
    for (const line of rows.toString('utf8').split('\n')) {
      if (line === '') continue;
      const [key = '', size = '', sha256 = ''] = line.split('\t');
      yield { key, size: Number(size), sha256 };
    }
}
