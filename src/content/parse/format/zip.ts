import { inflateRawSync } from 'node:zlib';
import { failed, parseLimits, unsupported } from '../types.ts';

type Entry = {
  name: string;
  method: number;
  compressedBytes: number;
  bytes: number;
  offset: number;
  encrypted: boolean;
};

/**
 * A ZIP archive whose entries are inflated one at a time, on demand, each bounded by what is really written out and
 * not by what its header claims.
 */
export class ZipArchive {
  readonly #bytes: Buffer;
  readonly #entries = new Map<string, Entry>();
  #inflatedBytes = 0;

  /** Throws ParseError when the archive has no readable directory. */
  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    try {
      this.#readDirectory();
    } catch (error) {
      if (error instanceof RangeError)
        throw failed('The file is cut short or damaged: its archive cannot be opened.', error);
      throw error;
    }
  }

  get names(): string[] {
    return [...this.#entries.keys()];
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** The contents of one entry, or undefined when there is none of that name. Throws ParseError. */
  read(name: string): Uint8Array | undefined {
    const entry = this.#entries.get(name);
    if (!entry) return undefined;
    if (entry.encrypted) throw unsupported('The file is protected by a password.');
    let contents: Buffer;
    try {
      const local = entry.offset;
      const start = local + 30 + this.#bytes.readUInt16LE(local + 26) + this.#bytes.readUInt16LE(local + 28);
      const stored = this.#bytes.subarray(start, start + entry.compressedBytes);
      if (stored.byteLength < entry.compressedBytes) throw new RangeError('past the end');
      contents = entry.method === 0 ? stored : this.#inflate(stored, entry.method);
    } catch (error) {
      if (error instanceof RangeError && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') throw bombError();
      if (error instanceof Error && error.name !== 'ParseError')
        throw failed('The file is damaged: part of its archive cannot be unpacked.', error);
      throw error;
    }
    this.#inflatedBytes += contents.byteLength;
    if (this.#inflatedBytes > parseLimits.zipTotalBytesMax) throw bombError();
    return contents;
  }

  readText(name: string): string | undefined {
    const contents = this.read(name);
    return contents === undefined ? undefined : decodeXmlBytes(contents);
  }

  #inflate(stored: Buffer, method: number): Buffer {
    if (method !== 8) throw unsupported('The file is packed in a way that cannot be read.');
    return inflateRawSync(stored, { maxOutputLength: parseLimits.zipEntryBytesMax });
  }

  #readDirectory(): void {
    const bytes = this.#bytes;
    let end = bytes.byteLength - 22;
    const lowest = Math.max(0, end - 65_535);
    while (end >= lowest && bytes.readUInt32LE(end) !== 0x06054b50) end -= 1;
    if (end < lowest) throw failed('The file is cut short or damaged: its archive has no directory.');
    const count = bytes.readUInt16LE(end + 10);
    let at = bytes.readUInt32LE(end + 16);
    if (count > parseLimits.zipEntriesMax) throw bombError();
    for (let index = 0; index < count; index++) {
      if (bytes.readUInt32LE(at) !== 0x02014b50) throw new RangeError('bad directory entry');
      const nameLength = bytes.readUInt16LE(at + 28);
      const name = bytes
        .toString('utf8', at + 46, at + 46 + nameLength)
        .replaceAll('\\', '/')
        .replace(/^\/+/, '');
      this.#entries.set(name, {
        name,
        encrypted: (bytes.readUInt16LE(at + 8) & 1) === 1,
        method: bytes.readUInt16LE(at + 10),
        compressedBytes: bytes.readUInt32LE(at + 20),
        bytes: bytes.readUInt32LE(at + 24),
        offset: bytes.readUInt32LE(at + 42),
      });
      at += 46 + nameLength + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
    }
  }
}

/** XML is UTF-8 unless a byte order mark or its declaration says otherwise. */
export function decodeXmlBytes(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  const declared = /^[^<]*<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(
    Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(200, bytes.byteLength)).toString('latin1'),
  )?.[1];
  try {
    return new TextDecoder(declared ?? 'utf-8').decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}

function bombError(): Error {
  return failed('The file unpacks to far more than a document holds.');
}
