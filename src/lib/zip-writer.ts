import { pipeline } from 'node:stream/promises';
import { crc32, createDeflateRaw } from 'node:zlib';

/** One file of an archive. `level`: 0 stores bytes that are compressed already, 9 compresses most. */
export type ZipEntry = { name: string; content: AsyncIterable<Uint8Array>; level?: number };

type Written = { name: Buffer; crc: number; size: number; packed: number; offset: number };

const wordMax = 0xffffffff;
/** The sizes follow the contents; names are UTF-8. */
const flags = 0x0808;
const deflate = 8;
const zip64Version = 45;
/** 1 January 1980, the earliest date of the format: entries have no time of their own. */
const noDate = 0x0021;

/**
 * A ZIP archive of any size as a stream (APPNOTE 6.3). It holds one chunk of one entry in memory, and of each entry what
 * the directory at the end says. Sizes have 64 bits, because they are known only after the contents.
 */
export async function* writeZip(entries: AsyncIterable<ZipEntry>): AsyncGenerator<Buffer> {
  const directory: Buffer[] = [];
  let offset = 0;
  for await (const { name, content, level } of entries) {
    const entry: Written = { name: Buffer.from(name), crc: 0, size: 0, packed: 0, offset };
    const header = localHeader(entry.name);
    yield header;
    for await (const chunk of deflated(counted(content, entry), level)) {
      entry.packed += chunk.length;
      yield chunk;
    }
    const descriptor = describe(entry);
    yield descriptor;
    offset += header.length + entry.packed + descriptor.length;
    directory.push(centralHeader(entry));
  }
  yield* directory;
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  yield endOfArchive(directory.length, offset, size);
}

async function* counted(content: AsyncIterable<Uint8Array>, entry: Written): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    entry.crc = crc32(chunk, entry.crc);
    entry.size += chunk.length;
    yield chunk;
  }
}

async function* deflated(content: AsyncIterable<Uint8Array>, level = 6): AsyncGenerator<Buffer> {
  const packer = createDeflateRaw({ level });
  const feeding = pipeline(content, packer);
  // An error of the contents also ends the packer, which throws it below.
  feeding.catch(() => undefined);
  yield* packer as AsyncIterable<Buffer>;
  await feeding;
}

function localHeader(name: Buffer): Buffer {
  const header = Buffer.alloc(50);
  header.writeUInt32LE(0x04034b50, 0);
  header.writeUInt16LE(zip64Version, 4);
  header.writeUInt16LE(flags, 6);
  header.writeUInt16LE(deflate, 8);
  header.writeUInt16LE(noDate, 12);
  header.writeUInt32LE(wordMax, 18);
  header.writeUInt32LE(wordMax, 22);
  header.writeUInt16LE(name.length, 26);
  header.writeUInt16LE(20, 28);
  // The ZIP64 field announces that the descriptor has sizes of 64 bits.
  header.writeUInt16LE(1, 30);
  header.writeUInt16LE(16, 32);
  return Buffer.concat([header.subarray(0, 30), name, header.subarray(30)]);
}

function describe({ crc, packed, size }: Written): Buffer {
  const descriptor = Buffer.alloc(24);
  descriptor.writeUInt32LE(0x08074b50, 0);
  descriptor.writeUInt32LE(crc, 4);
  descriptor.writeBigUInt64LE(BigInt(packed), 8);
  descriptor.writeBigUInt64LE(BigInt(size), 16);
  return descriptor;
}

function centralHeader({ name, crc, size, packed, offset }: Written): Buffer {
  const header = Buffer.alloc(46 + 28);
  header.writeUInt32LE(0x02014b50, 0);
  // Made under Unix, so that the permissions below are read.
  header.writeUInt16LE((3 << 8) | zip64Version, 4);
  header.writeUInt16LE(zip64Version, 6);
  header.writeUInt16LE(flags, 8);
  header.writeUInt16LE(deflate, 10);
  header.writeUInt16LE(noDate, 14);
  header.writeUInt32LE(crc, 16);
  header.writeUInt32LE(wordMax, 20);
  header.writeUInt32LE(wordMax, 24);
  header.writeUInt16LE(name.length, 28);
  header.writeUInt16LE(28, 30);
  // A file that its owner may read and write, and nobody else.
  header.writeUInt32LE((0o100600 << 16) >>> 0, 38);
  header.writeUInt32LE(wordMax, 42);
  header.writeUInt16LE(1, 46);
  header.writeUInt16LE(24, 48);
  header.writeBigUInt64LE(BigInt(size), 50);
  header.writeBigUInt64LE(BigInt(packed), 58);
  header.writeBigUInt64LE(BigInt(offset), 66);
  return Buffer.concat([header.subarray(0, 46), name, header.subarray(46)]);
}

function endOfArchive(count: number, start: number, size: number): Buffer {
  const end = Buffer.alloc(56 + 20 + 22);
  end.writeUInt32LE(0x06064b50, 0);
  end.writeBigUInt64LE(44n, 4);
  end.writeUInt16LE((3 << 8) | zip64Version, 12);
  end.writeUInt16LE(zip64Version, 14);
  end.writeBigUInt64LE(BigInt(count), 24);
  end.writeBigUInt64LE(BigInt(count), 32);
  end.writeBigUInt64LE(BigInt(size), 40);
  end.writeBigUInt64LE(BigInt(start), 48);
  end.writeUInt32LE(0x07064b50, 56);
  end.writeBigUInt64LE(BigInt(start + size), 64);
  end.writeUInt32LE(1, 72);
  end.writeUInt32LE(0x06054b50, 76);
  end.writeUInt16LE(Math.min(count, 0xffff), 84);
  end.writeUInt16LE(Math.min(count, 0xffff), 86);
  end.writeUInt32LE(Math.min(size, wordMax), 88);
  end.writeUInt32LE(Math.min(start, wordMax), 92);
  return end;
}
