/**
 * The full-text index as bytes. A chunk has an ordinal within its source. A term's postings are consecutive blocks:
 * the number of postings, then three variable-length integers for each: the distance to the previous ordinal (for the
 * first, to 0); how often the term occurs in the chunk, doubled, plus one if it occurs in the title or a heading; and
 * the chunk's length in words. Concatenated blocks are valid postings, so the database can merge segments by joining
 * strings. Word positions are stored separately, in the same order, because only phrases need them.
 */

export type TermPostings = { term: string; postings: Uint8Array; positions: Uint8Array };

/** One chunk as input of the index. */
type IndexedChunk = {
  ordinal: number;
  /** The number of words. */
  length: number;
  /** The ascending positions of each term. */
  terms: Map<string, number[]>;
  /** The terms that its title or a heading contains. */
  titled?: ReadonlySet<string>;
};

/** Packs ascending variable-length integers into a buffer that grows as needed. */
class Writer {
  #bytes: Buffer;
  #length = 0;

  constructor(capacity = 16) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  number(value: number): void {
    if (this.#length + 5 > this.#bytes.length) this.#grow(bytesOf(value));
    let rest = value;
    while (rest > 127) {
      this.#bytes[this.#length++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
  }

  /** Appends a part of other bytes. A short one is copied here, because a view of it would cost more. */
  append(bytes: Uint8Array, from = 0, to = bytes.length): void {
    const size = to - from;
    if (this.#length + size > this.#bytes.length) this.#grow(size);
    const own = this.#bytes;
    const shift = this.#length - from;
    if (size > copiedMax) own.set(bytes.subarray(from, to), this.#length);
    else for (let i = from; i < to; i++) own[shift + i] = bytes[i] as number;
    this.#length += size;
  }

  /** Writes the length of a text in UTF-8 bytes, and the text. */
  text(text: string): void {
    const length = Buffer.byteLength(text);
    this.number(length);
    if (this.#length + length > this.#bytes.length) this.#grow(length);
    this.#length += this.#bytes.write(text, this.#length);
  }

  get length(): number {
    return this.#length;
  }

  /** The bytes written so far, valid until the next write. */
  bytesWritten(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #grow(by: number): void {
    if (this.#length + by <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + by));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

const copiedMax = 64;

/** The length of a variable-length integer of at most 32 bits. */
function bytesOf(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5;
}

/** Reads variable-length integers one after another. */
class Reader {
  readonly #bytes: Uint8Array;
  offset: number;

  constructor(bytes: Uint8Array, offset = 0) {
    this.#bytes = bytes;
    this.offset = offset;
  }

  number(): number {
    let byte = this.#bytes[this.offset++] as number;
    if (byte < 128) return byte;
    let value = byte & 127;
    for (let shift = 7; ; shift += 7) {
      byte = this.#bytes[this.offset++] as number;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  }

  /** Skips a part that begins with its length. Returns where it ends. */
  skipPart(): number {
    const length = this.number();
    this.offset += length;
    return this.offset;
  }
}

/** The numbers of a term's postings and positions, before they are packed. */
type List = { count: number; before: number; postings: number[]; positions: number[] };

/** Packs the postings of chunks, which must come in ascending order of their ordinals. */
export class PostingsBuilder {
  readonly #lists = new Map<string, List>();

  add({ ordinal, length, terms, titled }: IndexedChunk): void {
    for (const [term, positions] of terms) {
      let list = this.#lists.get(term);
      if (list === undefined) {
        list = { count: 0, before: 0, postings: [], positions: [] };
        this.#lists.set(term, list);
      }
      list.count += 1;
      list.postings.push(ordinal - list.before, positions.length * 2 + (titled?.has(term) ? 1 : 0), length);
      list.before = ordinal;
      let before = 0;
      for (const position of positions) {
        list.positions.push(position - before);
        before = position;
      }
    }
  }

  /** Returns one entry per term. Their bytes are parts of one buffer. */
  finish(): TermPostings[] {
    const bytes = new Writer(16 * 1024);
    const ends = [...this.#lists].map(([term, { count, postings, positions }]) => {
      bytes.number(count);
      for (const value of postings) bytes.number(value);
      const middle = bytes.length;
      for (const value of positions) bytes.number(value);
      return { term, middle, end: bytes.length };
    });
    const all = plainBytes(bytes.bytesWritten());
    return ends.map(({ term, middle, end }, i) => ({
      term,
      postings: all.subarray(ends[i - 1]?.end ?? 0, middle),
      positions: all.subarray(middle, end),
    }));
  }
}

/** Calls `visit` for each posting of a part of the bytes, block by block. */
export function readPostings(
  bytes: Uint8Array,
  visit: (ordinal: number, frequency: number, length: number) => void,
  from = 0,
  to = bytes.length,
): void {
  const reader = new Reader(bytes, from);
  while (reader.offset < to) {
    let ordinal = 0;
    for (let left = reader.number(); left > 0; left--) {
      ordinal += reader.number();
      visit(ordinal, reader.number() >>> 1, reader.number());
    }
  }
}

/** Postings decoded into columns, which ranking iterates over. */
export type PostingColumns = {
  ordinals: Int32Array;
  /** Frequencies as stored: doubled, plus one for a term of the title or a heading. */
  tallies: Uint16Array;
  lengths: Uint16Array;
};

export function unpackPostings(bytes: Uint8Array): PostingColumns {
  const all = emptyColumns(Math.ceil(bytes.length / postingBytesMin));
  let count = 0;
  readColumns(bytes, ({ ordinals, tallies, lengths }) => {
    all.ordinals.set(ordinals, count);
    all.tallies.set(tallies, count);
    all.lengths.set(lengths, count);
    count += ordinals.length;
  });
  return {
    ordinals: all.ordinals.slice(0, count),
    tallies: all.tallies.slice(0, count),
    lengths: all.lengths.slice(0, count),
  };
}

/** Postings are decoded in blocks of this many ordinals, the first of which is a multiple of it. */
export const ordinalsPerBlock = 65_536;
const postingBytesMin = 3;

let block: PostingColumns | undefined;

function emptyColumns(size: number): PostingColumns {
  return { ordinals: new Int32Array(size), tallies: new Uint16Array(size), lengths: new Uint16Array(size) };
}

/**
 * Decodes postings block by block, into memory that the next block uses again: `take` gets columns that are valid until
 * it returns. Common terms have a posting for every chunk, so this loop is inlined instead of using `readPostings`.
 */
export function readColumns(bytes: Uint8Array, take: (columns: PostingColumns) => void): void {
  block ??= emptyColumns(ordinalsPerBlock);
  const { ordinals, tallies, lengths } = block;
  let at = 0;
  let count = 0;
  let blockEnd = 0;
  let value = 0;
  const readNext = () => {
    let byte = bytes[at++] as number;
    value = byte & 127;
    for (let shift = 7; byte > 127; shift += 7) {
      byte = bytes[at++] as number;
      value |= (byte & 127) << shift;
    }
  };
  const endBlock = () => {
    if (count === 0) return;
    take({
      ordinals: ordinals.subarray(0, count),
      tallies: tallies.subarray(0, count),
      lengths: lengths.subarray(0, count),
    });
    count = 0;
  };
  while (at < bytes.length) {
    readNext();
    let ordinal = 0;
    for (let left = value; left > 0; left--) {
      readNext();
      ordinal += value;
      if (ordinal >= blockEnd) {
        endBlock();
        blockEnd = (Math.floor(ordinal / ordinalsPerBlock) + 1) * ordinalsPerBlock;
      }
      ordinals[count] = ordinal;
      readNext();
      tallies[count] = Math.min(value, 65_534 + (value & 1));
      readNext();
      lengths[count] = Math.min(value, 65_535);
      count += 1;
    }
  }
  endBlock();
}

/** Calls `visit` with the positions of a term in each chunk, in the order of its postings. */
export function readPositions(
  postings: Uint8Array,
  positions: Uint8Array,
  visit: (ordinal: number, positions: number[]) => void,
): void {
  const reader = new Reader(positions);
  readPostings(postings, (ordinal, frequency) => {
    const list: number[] = [];
    let position = 0;
    for (let i = 0; i < frequency; i++) {
      position += reader.number();
      list.push(position);
    }
    visit(ordinal, list);
  });
}

/**
 * Packs one document's part of the index into one value, until there are enough documents to be sorted by term: the
 * number of terms, their hashes in ascending order, the offset of each entry, and the entries.
 */
export function packBundle(entries: TermPostings[]): Buffer {
  const sorted = entries
    .map(({ term, postings, positions }) => ({ term, postings, positions, hash: hashTerm(term) }))
    .sort((a, b) => a.hash - b.hash || (a.term < b.term ? -1 : 1));
  const header = Buffer.alloc(4 + sorted.length * 8);
  header.writeUInt32LE(sorted.length, 0);
  const body = new Writer(16 * 1024);
  for (const [i, { term, postings, positions, hash }] of sorted.entries()) {
    header.writeUInt32LE(hash, 4 + i * 4);
    header.writeUInt32LE(body.length, 4 + sorted.length * 4 + i * 4);
    body.text(term);
    body.number(postings.length);
    body.append(postings);
    body.number(positions.length);
    body.append(positions);
  }
  return Buffer.concat([header, body.bytesWritten()]);
}

/** Shifts the bundle of one document, whose ordinals count from 0, so that it starts at this ordinal. */
export function placeBundle(bundle: Buffer, firstOrdinal: number): Buffer {
  const count = bundle.readUInt32LE(0);
  const header = Buffer.from(bundle.subarray(0, 4 + count * 8));
  const bytes = plainBytes(bundle);
  const source = new Reader(bytes, header.length);
  // An ordinal grows by four bytes at most.
  const body = new Writer(bundle.length + count * 5);
  for (let i = 0; i < count; i++) {
    header.writeUInt32LE(body.length, 4 + count * 4 + i * 4);
    const start = source.offset;
    body.append(bytes, start, source.skipPart());
    const end = source.number() + source.offset;
    const chunks = source.number();
    const first = firstOrdinal + source.number();
    body.number(bytesOf(chunks) + bytesOf(first) + end - source.offset);
    body.number(chunks);
    body.number(first);
    const rest = source.offset;
    source.offset = end;
    body.append(bytes, rest, source.skipPart());
  }
  return Buffer.concat([header, body.bytesWritten()]);
}

/** The entry of one term in a bundle. */
export function findInBundle(bundle: Buffer, term: string): TermPostings | undefined {
  const count = bundle.readUInt32LE(0);
  const hash = hashTerm(term);
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (bundle.readUInt32LE(4 + middle * 4) < hash) low = middle + 1;
    else high = middle;
  }
  for (; low < count && bundle.readUInt32LE(4 + low * 4) === hash; low++) {
    const offset = 4 + count * 8 + bundle.readUInt32LE(4 + count * 4 + low * 4);
    const entry = partsOf(bundle, readEntry(bundle, new Reader(plainBytes(bundle), offset)));
    // Copied, so that a cache does not keep the whole bundle.
    if (entry.term === term)
      return { term, postings: Buffer.from(entry.postings), positions: Buffer.from(entry.positions) };
  }
  return undefined;
}

/** The entries of a bundle, whose bytes stay part of it. */
export function readBundle(bundle: Buffer): TermPostings[] {
  const bytes = plainBytes(bundle);
  return listEntries(bundle).map((entry) => partsOf(bytes, entry));
}

/** Where a term's postings and positions are in a bundle. */
type BundleEntry = { term: string; start: number; end: number; positionsStart: number; positionsEnd: number };

/** The entries of a bundle, without views of their bytes, whose creation takes longer than reading them. */
export function listEntries(bundle: Buffer): BundleEntry[] {
  const count = bundle.readUInt32LE(0);
  const reader = new Reader(plainBytes(bundle), 4 + count * 8);
  return Array.from({ length: count }, () => readEntry(bundle, reader));
}

function readEntry(bundle: Buffer, reader: Reader): BundleEntry {
  const termEnd = reader.number() + reader.offset;
  const term = bundle.toString('utf8', reader.offset, termEnd);
  reader.offset = termEnd;
  const end = reader.number() + reader.offset;
  const start = reader.offset;
  reader.offset = end;
  const positionsEnd = reader.number() + reader.offset;
  const positionsStart = reader.offset;
  reader.offset = positionsEnd;
  return { term, start, end, positionsStart, positionsEnd };
}

function partsOf(bytes: Uint8Array, { term, start, end, positionsStart, positionsEnd }: BundleEntry): TermPostings {
  return { term, postings: bytes.subarray(start, end), positions: bytes.subarray(positionsStart, positionsEnd) };
}

/** The same bytes. Parts of a Buffer take much longer to create. */
function plainBytes(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Parts of one value: `substring(all from start for size)` in SQL, which counts from 1. */
type JoinedParts = { all: Buffer; starts: number[]; sizes: number[] };

/** The terms of several documents in the order of their characters, with the postings and the positions of each. */
export type MergedPostings = { terms: string[]; postings: JoinedParts; positions: JoinedParts };

/** Merges the bundles of several documents, in ascending order of their ordinals, term by term. */
export function mergeBundles(bundles: readonly Buffer[]): MergedPostings {
  const occurrences = new Map<string, { bytes: Uint8Array; entry: BundleEntry }[]>();
  for (const bundle of bundles) {
    const bytes = plainBytes(bundle);
    for (const entry of listEntries(bundle)) {
      const known = occurrences.get(entry.term);
      if (known) known.push({ bytes, entry });
      else occurrences.set(entry.term, [{ bytes, entry }]);
    }
  }
  const capacity = bundles.reduce((sum, bundle) => sum + bundle.length, 0);
  const postings = new PartsWriter(capacity);
  const positions = new PartsWriter(capacity);
  const terms = [...occurrences.keys()].sort();
  for (const term of terms) {
    for (const { bytes, entry } of occurrences.get(term) ?? []) {
      postings.bytes.append(bytes, entry.start, entry.end);
      positions.bytes.append(bytes, entry.positionsStart, entry.positionsEnd);
    }
    postings.endPart();
    positions.endPart();
  }
  return { terms, postings: postings.finish(), positions: positions.finish() };
}

/** Writes parts of one value one after another. */
class PartsWriter {
  readonly bytes: Writer;
  readonly #starts: number[] = [];
  readonly #sizes: number[] = [];
  #start = 0;

  constructor(capacity: number) {
    this.bytes = new Writer(capacity);
  }

  endPart(): void {
    this.#starts.push(this.#start + 1);
    this.#sizes.push(this.bytes.length - this.#start);
    this.#start = this.bytes.length;
  }

  finish(): JoinedParts {
    return { all: this.bytes.bytesWritten(), starts: this.#starts, sizes: this.#sizes };
  }
}

/** FNV-1a, 32 bits. */
function hashTerm(term: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < term.length; i++) hash = Math.imul(hash ^ term.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
