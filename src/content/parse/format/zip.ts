import { inflateRawSync } from 'node:zlib';
import { type Entry, fromBufferPromise } from 'yauzl';
import { parseLimits } from '../limits.ts';
import { failed, ParseError, unsupported } from '../types.ts';

/**
 * A ZIP archive (or ZIP64) in memory. `yauzl` reads and checks its directory. Entries are inflated one at a time, on
 * demand, and bounded by the bytes actually written, not by what the header claims.
 */
export class ZipArchive {
  readonly #bytes: Buffer;
  readonly #entries: Map<string, Entry>;
  #inflatedBytes = 0;

  private constructor(bytes: Buffer, entries: Map<string, Entry>) {
    this.#bytes = bytes;
    this.#entries = entries;
  }

  /** Throws ParseError if the archive has no readable directory. */
  static async open(bytes: Uint8Array): Promise<ZipArchive> {
    const archive = withoutTrailingBytes(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    try {
      return new ZipArchive(archive, await readDirectory(archive));
    } catch (error) {
      if (error instanceof ParseError) throw error;
      throw failed('The file is truncated or damaged: its archive cannot be opened.', error);
    }
  }

  get names(): string[] {
    return [...this.#entries.keys()];
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** The contents of one entry, or undefined if there is none of that name. Throws ParseError. */
  read(name: string): Uint8Array | undefined {
    const entry = this.#entries.get(name);
    if (!entry) return undefined;
    if (entry.isEncrypted()) throw unsupported('The file is protected by a password.');
    let contents: Buffer;
    try {
      const stored = this.#storedBytes(entry);
      contents = entry.compressionMethod === 0 ? stored : inflate(stored, entry.compressionMethod);
    } catch (error) {
      if (error instanceof ParseError) throw error;
      if (error instanceof RangeError && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') throw bombError();
      throw failed('The file is damaged: part of its archive cannot be unpacked.', error);
    }
    this.#inflatedBytes += contents.byteLength;
    if (this.#inflatedBytes > parseLimits.zipTotalBytesMax) throw bombError();
    return contents;
  }

  readText(name: string): string | undefined {
    const contents = this.read(name);
    return contents === undefined ? undefined : decodeXmlBytes(contents);
  }

  /** The stored bytes of an entry. Throws RangeError if they are past the end. */
  #storedBytes(entry: Entry): Buffer {
    const header = entry.relativeOffsetOfLocalHeader;
    const start = header + 30 + this.#bytes.readUInt16LE(header + 26) + this.#bytes.readUInt16LE(header + 28);
    const stored = this.#bytes.subarray(start, start + entry.compressedSize);
    if (stored.byteLength < entry.compressedSize) throw new RangeError('The entry is past the end of the archive.');
    return stored;
  }
}

async function readDirectory(archive: Buffer): Promise<Map<string, Entry>> {
  // Names are decoded here: yauzl would refuse a whole document because of one name with "..", although names are
  // never used as paths.
  const zip = await fromBufferPromise(archive, { lazyEntries: true, decodeStrings: false });
  if (zip.entryCount > parseLimits.zipEntriesMax) throw bombError();
  const entries = new Map<string, Entry>();
  for await (const entry of zip.eachEntry()) {
    const name = entry.fileNameRaw.toString('utf8').replaceAll('\\', '/').replace(/^\/+/, '');
    entries.set(name, entry);
  }
  return entries;
}

/**
 * Some programs append bytes to a finished archive, which yauzl refuses. The archive is cut where its end record
 * says.
 */
function withoutTrailingBytes(archive: Buffer): Buffer {
  const end = archive.lastIndexOf(endRecordSignature);
  if (end < 0 || end + endRecordBytes > archive.byteLength) return archive;
  return archive.subarray(0, end + endRecordBytes + archive.readUInt16LE(end + 20));
}

const endRecordSignature = Buffer.from([0x50, 0x4b, 0x05, 0x06]);
const endRecordBytes = 22;

function inflate(stored: Buffer, method: number): Buffer {
  if (method !== 8) throw unsupported('The file uses an unsupported compression method.');
  return inflateRawSync(stored, { maxOutputLength: parseLimits.zipEntryBytesMax });
}

/** XML is UTF-8 unless a byte order mark or its declaration says otherwise. */
function decodeXmlBytes(bytes: Uint8Array): string {
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
  return failed('The file unpacks to far more data than a document can contain.');
}
