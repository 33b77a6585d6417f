import { ordinalsPerBlock, type PostingColumns, readColumns } from '../../content/postings.ts';

/**
 * Postings of chunks of one block of ordinals, from `first` on, as one buffer of columns. Few have their ordinals minus
 * `first` in two bytes each, and tallies and lengths in one byte each, or in two if a value needs it. Many are divided
 * into groups of 256 ordinals: the buffer has the place where each group begins, the ordinals, and the tallies. The
 * ordinals within a group take one byte each, or, if there are more than an eighth of all, one bit for each of all. All
 * of them share the lengths of the block's chunks, in `lengths`.
 */
export type PackedColumns = {
  first: number;
  count: number;
  tallyBytes: 1 | 2;
  /** Of each length in the buffer; 0 if they are in `lengths`. */
  lengthBytes: 0 | 1 | 2;
  /** Where the columns begin in the buffer, which those of other segments may share. */
  at: number;
  buffer: ArrayBufferLike;
  lengths?: SharedArrayBuffer;
};

type Numbers = Uint8Array | Uint16Array;

/**
 * The columns of a buffer. Group `g` has the postings from `starts[g]` up to the next start, whose ordinals are `first`
 * plus 256 times `g` plus `ordinals`.
 */
export type Columns = {
  first: number;
  starts: Uint16Array;
  ordinals: Numbers;
  /** Instead of `ordinals`: a bit for each ordinal of the block. */
  bits: Uint32Array | undefined;
  tallies: Numbers;
  lengths: Numbers;
  /** Whether `lengths` has those of all chunks from `first` on, instead of one for each posting. */
  lengthsByOrdinal: boolean;
};

/** The lengths of the chunks of a source, which many of its postings share: one buffer for each block of ordinals. */
export type ChunkLengths = { first: number; blocks: SharedArrayBuffer[] };

export const ordinalsPerGroup = 256;
const groups = ordinalsPerBlock / ordinalsPerGroup;
const oneGroup = new Uint16Array(1);
/** From this number in a block on, groups and common lengths take less memory. */
const groupedMin = 1_024;
/** The bytes of a bit for each ordinal of a block. For as many postings, bits take less memory than bytes. */
const bitsBytes = ordinalsPerBlock / 8;
const noOrdinals = new Uint8Array(0);
/** Smaller buffers are copied to other threads: sharing one costs more. */
const sharedBytesMin = 4 * 1024;

/** Room for the lengths of the chunks with these ordinals. */
export function allocateLengths(): SharedArrayBuffer {
  return new SharedArrayBuffer(ordinalsPerBlock * Uint16Array.BYTES_PER_ELEMENT);
}

/** The first ordinals of the blocks that have an ordinal of this range. */
export function blocksIn(firstOrdinal: number, nextOrdinal: number): number[] {
  const first = startOfBlock(firstOrdinal);
  return Array.from(
    { length: Math.ceil((nextOrdinal - first) / ordinalsPerBlock) },
    (_block, i) => first + i * ordinalsPerBlock,
  );
}

/** The same postings with these lengths, if they have lengths in common with others. */
export function withLengths(packed: PackedColumns, known: ChunkLengths): PackedColumns {
  const lengths = lengthsFrom(known, packed.first);
  return packed.lengths === undefined || lengths === undefined ? packed : { ...packed, lengths };
}

function lengthsFrom({ first, blocks }: ChunkLengths, start: number): SharedArrayBuffer | undefined {
  return blocks[(start - first) / ordinalsPerBlock];
}

function startOfBlock(ordinal: number): number {
  return ordinal - (ordinal % ordinalsPerBlock);
}

/** Decodes the postings of one term. Adds what they say of lengths to `known`. */
export function packPostings(bytes: Uint8Array, known?: ChunkLengths): PackedColumns[] {
  const packed: PackedColumns[] = [];
  readColumns(bytes, (columns) => packed.push(packBlock(columns, known)));
  return packed;
}

/** Decodes the postings that each of several segments has of one term. The small ones are in one buffer. */
export function packParts(parts: readonly Uint8Array[], known?: ChunkLengths): PackedColumns[][] {
  const packed = parts.map((bytes) => packPostings(bytes, known));
  const small = packed.flat().filter(({ buffer }) => buffer.byteLength < sharedBytesMin);
  let size = 0;
  const places = small.map(({ buffer }) => {
    const at = size;
    // Numbers of two bytes must not begin at an odd address.
    size += Math.ceil(buffer.byteLength / 2) * 2;
    return at;
  });
  const joined = new Uint8Array(allocate(size));
  for (const [i, one] of small.entries()) {
    const at = places[i] as number;
    joined.set(new Uint8Array(one.buffer), at);
    Object.assign(one, { at, buffer: joined.buffer });
  }
  return packed;
}

function allocate(bytes: number): ArrayBufferLike {
  return bytes < sharedBytesMin ? new ArrayBuffer(bytes) : new SharedArrayBuffer(bytes);
}

/** The same for postings that are decoded. */
export function packColumns({ ordinals, tallies, lengths }: PostingColumns, known?: ChunkLengths): PackedColumns[] {
  const packed: PackedColumns[] = [];
  for (let from = 0, to = 0; from < ordinals.length; from = to) {
    const end = startOfBlock(ordinals[from] as number) + ordinalsPerBlock;
    while (to < ordinals.length && (ordinals[to] as number) < end) to += 1;
    const block = {
      ordinals: ordinals.subarray(from, to),
      tallies: tallies.subarray(from, to),
      lengths: lengths.subarray(from, to),
    };
    packed.push(packBlock(block, known));
  }
  return packed;
}

function packBlock(columns: PostingColumns, known: ChunkLengths | undefined): PackedColumns {
  const first = startOfBlock(columns.ordinals[0] as number);
  const count = columns.ordinals.length;
  const lengths = known && lengthsFrom(known, first);
  const tallyBytes = bytesFor(columns.tallies);
  const isGrouped = lengths !== undefined && count >= groupedMin;
  const lengthBytes = isGrouped ? 0 : bytesFor(columns.lengths);
  const bytes = isGrouped
    ? groups * 2 + Math.min(count, bitsBytes) + count * tallyBytes
    : count * (2 + tallyBytes + lengthBytes);
  const buffer = allocate(bytes);
  const packed: PackedColumns = { first, count, tallyBytes, lengthBytes, at: 0, buffer, ...(isGrouped && { lengths }) };
  const opened = openColumns(packed);
  opened.tallies.set(columns.tallies);
  if (isGrouped) fillGroups(columns, opened);
  else {
    for (let i = 0; i < count; i++) opened.ordinals[i] = (columns.ordinals[i] as number) - first;
    opened.lengths.set(columns.lengths);
  }
  return packed;
}

function bytesFor(values: Uint16Array): 1 | 2 {
  let largest = 0;
  for (let i = 0; i < values.length; i++) largest |= values[i] as number;
  return largest > 255 ? 2 : 1;
}

/** Several threads may write the same length of a chunk at once. */
function fillGroups(columns: PostingColumns, { first, starts, ordinals, bits, tallies, lengths }: Columns): void {
  let group = 0;
  for (let i = 0; i < tallies.length; i++) {
    const ordinal = (columns.ordinals[i] as number) - first;
    while (group < ordinal >>> 8) starts[++group] = i;
    if (bits) bits[ordinal >>> 5] = (bits[ordinal >>> 5] as number) | (1 << (ordinal & 31));
    else ordinals[i] = ordinal & 255;
    lengths[ordinal] = columns.lengths[i] as number;
  }
  starts.fill(tallies.length, group + 1);
}

export function openColumns({ first, count, tallyBytes, lengthBytes, at, buffer, lengths }: PackedColumns): Columns {
  // Numbers of two bytes come first, because they must not begin at an odd address.
  const open = (bytes: 1 | 2, from: number) =>
    bytes === 2 ? new Uint16Array(buffer, at + from, count) : new Uint8Array(buffer, at + from, count);
  if (lengthBytes === 0) {
    const hasBits = count >= bitsBytes;
    return {
      ...{ first, starts: new Uint16Array(buffer, at, groups) },
      bits: hasBits ? new Uint32Array(buffer, at + groups * 2, bitsBytes / 4) : undefined,
      tallies: open(tallyBytes, groups * 2 + (hasBits ? bitsBytes : 0)),
      ordinals: hasBits ? noOrdinals : open(1, groups * 2 + count * tallyBytes),
      lengths: new Uint16Array(lengths as SharedArrayBuffer),
      lengthsByOrdinal: true,
    };
  }
  const talliesFirst = tallyBytes >= lengthBytes;
  return {
    ...{ first, starts: oneGroup, ordinals: open(2, 0), bits: undefined },
    tallies: open(tallyBytes, count * (talliesFirst ? 2 : 2 + lengthBytes)),
    lengths: open(lengthBytes, count * (talliesFirst ? 2 + tallyBytes : 2)),
    lengthsByOrdinal: false,
  };
}

/** Where the postings of a group end. */
export function endOfGroup({ starts, tallies }: Columns, group: number): number {
  return group + 1 < starts.length ? (starts[group + 1] as number) : tallies.length;
}

const wordsPerGroup = ordinalsPerGroup / 32;
const ordinalsOfBits = new Uint8Array(ordinalsPerGroup);

/** Where `readGroup` leaves the ordinals of a group: within it, or, if there is one group only, within the block. */
export function ordinalsOf({ ordinals, bits }: Columns): Numbers {
  return bits ? ordinalsOfBits : ordinals;
}

/** Reads the ordinals of a group. Those of the posting `i` are at `i` minus the number that it returns. */
export function readGroup({ starts, bits }: Columns, group: number): number {
  if (bits === undefined) return 0;
  let count = 0;
  for (let word = 0; word < wordsPerGroup; word++)
    for (let left = bits[group * wordsPerGroup + word] as number; left !== 0; left &= left - 1)
      ordinalsOfBits[count++] = word * 32 + 31 - Math.clz32(left & -left);
  return starts[group] as number;
}

/** The place of an ordinal among the postings of its group; -1 if it has none. */
export function findInBits(bits: Uint32Array, group: number, inGroup: number): number {
  const last = group * wordsPerGroup + (inGroup >>> 5);
  const word = bits[last] as number;
  const bit = 1 << (inGroup & 31);
  if ((word & bit) === 0) return -1;
  let place = countBits(word & (bit - 1));
  for (let before = group * wordsPerGroup; before < last; before++) place += countBits(bits[before] as number);
  return place;
}

function countBits(word: number): number {
  let sums = word - ((word >>> 1) & 0x5555_5555);
  sums = (sums & 0x3333_3333) + ((sums >>> 2) & 0x3333_3333);
  return Math.imul((sums + (sums >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
}

/** Calls `visit` with each ordinal and its place, until it returns true. Returns whether it has. */
export function visitOrdinals(columns: Columns, visit: (ordinal: number, i: number) => boolean): boolean {
  const { first, starts } = columns;
  const ordinals = ordinalsOf(columns);
  for (let group = 0; group < starts.length; group++) {
    const start = first + group * ordinalsPerGroup;
    const end = endOfGroup(columns, group);
    const shift = readGroup(columns, group);
    for (let i = starts[group] as number; i < end; i++)
      if (visit(start + (ordinals[i - shift] as number), i)) return true;
  }
  return false;
}

/** Merges several lists of the same source, so that their words count as one word. */
export function joinColumns(parts: readonly PackedColumns[]): PackedColumns[] {
  let lists = parts.map(unpack);
  // In pairs, so that each posting is copied only log2(lists) times.
  while (lists.length > 1)
    lists = Array.from({ length: Math.ceil(lists.length / 2) }, (_pair, i) => {
      const [one, other] = lists.slice(i * 2, i * 2 + 2);
      return one && other ? joinTwo(one, other) : (one as PostingColumns);
    });
  return lists[0] ? packColumns(lists[0]) : [];
}

function unpack(packed: PackedColumns): PostingColumns {
  const columns = openColumns(packed);
  const ordinals = new Int32Array(packed.count);
  visitOrdinals(columns, (ordinal, i) => {
    ordinals[i] = ordinal;
    return false;
  });
  const { first, lengths, lengthsByOrdinal } = columns;
  return {
    ordinals,
    tallies: Uint16Array.from(columns.tallies),
    lengths: lengthsByOrdinal
      ? Uint16Array.from(ordinals, (ordinal) => lengths[ordinal - first] as number)
      : Uint16Array.from(lengths),
  };
}

function joinTwo(one: PostingColumns, other: PostingColumns): PostingColumns {
  const size = one.ordinals.length + other.ordinals.length;
  const ordinals = new Int32Array(size);
  const tallies = new Uint16Array(size);
  const lengths = new Uint16Array(size);
  let i = 0;
  let j = 0;
  let count = 0;
  while (i < one.ordinals.length || j < other.ordinals.length) {
    const a = one.ordinals[i] ?? Number.POSITIVE_INFINITY;
    const b = other.ordinals[j] ?? Number.POSITIVE_INFINITY;
    ordinals[count] = Math.min(a, b);
    lengths[count] = (a <= b ? one.lengths[i] : other.lengths[j]) as number;
    tallies[count] = addTallies(a <= b ? (one.tallies[i] as number) : 0, b <= a ? (other.tallies[j] as number) : 0);
    if (a <= b) i += 1;
    if (b <= a) j += 1;
    count += 1;
  }
  return {
    ordinals: ordinals.subarray(0, count),
    tallies: tallies.subarray(0, count),
    lengths: lengths.subarray(0, count),
  };
}

/** Adds frequencies that are stored doubled, plus one for a term of the title. */
function addTallies(one: number, other: number): number {
  const titled = (one | other) & 1;
  return Math.min((((one >>> 1) + (other >>> 1)) << 1) | titled, 65_534 | titled);
}
