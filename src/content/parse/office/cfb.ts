import { decodeUtf16 } from '../format/utf16.ts';
import { failed } from '../types.ts';

const endOfChain = 0xfffffffe;
const noStream = 0xffffffff;
const directoryEntriesMax = 100_000;

type CfbEntry = { name: string; path: string; isStorage: boolean; start: number; length: number };

/** A compound file (the container of old Office formats and Outlook messages): named streams in storages. */
export class CompoundFile {
  readonly #bytes: Buffer;
  readonly #sectorBytes: number;
  readonly #miniSectorBytes: number;
  readonly #miniCutoff: number;
  readonly #fat: Uint32Array;
  readonly #miniFat: Uint32Array;
  readonly #miniStream: Buffer;
  readonly entries = new Map<string, CfbEntry>();

  /** Throws ParseError when the container is damaged. */
  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const header = this.#bytes;
    if (header.byteLength < 512) throw damaged();
    this.#sectorBytes = 1 << Math.min(20, header.readUInt16LE(30));
    this.#miniSectorBytes = 1 << Math.min(12, header.readUInt16LE(32));
    this.#miniCutoff = header.readUInt32LE(56);
    if (this.#sectorBytes < 128 || this.#miniSectorBytes < 8) throw damaged();
    this.#fat = this.#readFat(header);
    const directory = this.#chain(header.readUInt32LE(48), Number.POSITIVE_INFINITY);
    const miniFat = this.#chain(header.readUInt32LE(60), Number.POSITIVE_INFINITY);
    this.#miniFat = toWords(miniFat);
    const root = this.#readDirectory(directory);
    this.#miniStream = root ? this.#chain(root.start, root.length) : Buffer.alloc(0);
  }

  /** The contents of the stream with this path, case-insensitive; undefined without one. */
  read(path: string): Buffer | undefined {
    const entry = this.entries.get(path.toLowerCase());
    if (!entry || entry.isStorage) return undefined;
    if (entry.length >= this.#miniCutoff) return this.#chain(entry.start, entry.length);
    const parts: Buffer[] = [];
    let sector = entry.start;
    for (let taken = 0; taken < entry.length && sector < this.#miniFat.length; taken += this.#miniSectorBytes) {
      const from = sector * this.#miniSectorBytes;
      parts.push(this.#miniStream.subarray(from, from + this.#miniSectorBytes));
      sector = this.#miniFat[sector] ?? endOfChain;
    }
    return Buffer.concat(parts).subarray(0, entry.length);
  }

  /** Bytes of all streams in a storage, `…/`. */
  lengthOf(storage: string): number {
    const prefix = storage.toLowerCase();
    let length = 0;
    for (const [path, entry] of this.entries)
      if (!entry.isStorage && path.startsWith(prefix)) length += Math.min(entry.length, this.#bytes.byteLength);
    return length;
  }

  #sector(index: number): Buffer {
    const from = (index + 1) * this.#sectorBytes;
    return this.#bytes.subarray(from, from + this.#sectorBytes);
  }

  /** Sectors linked by the allocation table; a chain is never longer than the file, so a loop ends. */
  #chain(start: number, length: number): Buffer {
    const parts: Buffer[] = [];
    let sector = start;
    let taken = 0;
    while (sector < this.#fat.length && taken < length && parts.length <= this.#fat.length) {
      const part = this.#sector(sector);
      if (part.byteLength === 0) break;
      parts.push(part);
      taken += part.byteLength;
      if (taken > this.#bytes.byteLength * 2) throw damaged();
      sector = this.#fat[sector] ?? endOfChain;
    }
    const whole = Buffer.concat(parts);
    return whole.byteLength > length ? whole.subarray(0, length) : whole;
  }

  #readFat(header: Buffer): Uint32Array {
    const sectors: number[] = [];
    const sectorsMax = Math.ceil(this.#bytes.byteLength / this.#sectorBytes);
    for (let index = 0; index < 109; index++) sectors.push(header.readUInt32LE(76 + index * 4));
    let next = header.readUInt32LE(68);
    for (let guard = 0; next < sectorsMax && guard < sectorsMax; guard++) {
      const words = toWords(this.#sector(next));
      sectors.push(...words.subarray(0, -1));
      next = words.at(-1) ?? endOfChain;
    }
    const parts = sectors
      .filter((sector) => sector < sectorsMax)
      .slice(0, sectorsMax)
      .map((sector) => this.#sector(sector));
    return toWords(Buffer.concat(parts));
  }

  #readDirectory(bytes: Buffer): CfbEntry | undefined {
    const count = Math.min(directoryEntriesMax, Math.floor(bytes.byteLength / 128));
    const raw = Array.from({ length: count }, (_, index) => {
      const at = index * 128;
      const nameLength = Math.min(64, bytes.readUInt16LE(at + 64));
      return {
        name: decodeUtf16(bytes, at, at + Math.max(0, nameLength - 2)),
        type: bytes.readUInt8(at + 66),
        left: bytes.readUInt32LE(at + 68),
        right: bytes.readUInt32LE(at + 72),
        child: bytes.readUInt32LE(at + 76),
        start: bytes.readUInt32LE(at + 116),
        length: bytes.readUInt32LE(at + 120),
      };
    });
    const seen = new Set<number>();
    const pending: { index: number; folder: string }[] = [{ index: raw[0]?.child ?? noStream, folder: '' }];
    for (let next = pending.pop(); next; next = pending.pop()) {
      const entry = raw[next.index];
      if (!entry || seen.has(next.index)) continue;
      seen.add(next.index);
      pending.push({ index: entry.left, folder: next.folder }, { index: entry.right, folder: next.folder });
      const path = `${next.folder}${entry.name}`;
      const isStorage = entry.type === 1;
      this.entries.set(path.toLowerCase(), {
        name: entry.name,
        path,
        isStorage,
        start: entry.start,
        length: entry.length,
      });
      if (isStorage) pending.push({ index: entry.child, folder: `${path}/` });
    }
    const root = raw[0];
    return root ? { name: root.name, path: '', isStorage: true, start: root.start, length: root.length } : undefined;
  }
}

function toWords(bytes: Buffer): Uint32Array {
  const words = new Uint32Array(bytes.byteLength >>> 2);
  for (let index = 0; index < words.length; index++) words[index] = bytes.readUInt32LE(index * 4);
  return words;
}

function damaged(): Error {
  return failed('The file is truncated or damaged: its container cannot be opened.');
}
