import { type PostingColumns, readColumns } from '../../content/postings.ts';

/**
 * Postings of chunks whose ordinals differ from `first` by less than 65,536, as one buffer of columns: ordinals minus
 * `first` in two bytes each, and tallies and lengths in one byte each, or in two if a value needs it.
 */
export type PackedColumns = {
  first: number;
  count: number;
  tallyBytes: 1 | 2;
  lengthBytes: 1 | 2;
  buffer: ArrayBufferLike;
};

type Numbers = Uint8Array | Uint16Array;

/** The columns of a buffer. Ordinals are relative to `first`. */
export type Columns = { first: number; ordinals: Uint16Array; tallies: Numbers; lengths: Numbers };

const ordinalsPerBlock = 65_536;
/** Smaller buffers are copied to other threads: sharing one costs more. */
const sharedBytesMin = 4 * 1024;

/** Decodes the postings of one term. */
export function packPostings(bytes: Uint8Array): PackedColumns[] {
  return packColumns(readColumns(bytes));
}

/** One buffer for every 65,536 ordinals that occur. */
export function packColumns({ ordinals, tallies, lengths }: PostingColumns): PackedColumns[] {
  const packed: PackedColumns[] = [];
  for (let from = 0; from < ordinals.length; ) {
    const first = ordinals[from] as number;
    let to = from;
    let largest = 0;
    let longest = 0;
    for (; to < ordinals.length && (ordinals[to] as number) - first < ordinalsPerBlock; to++) {
      largest |= tallies[to] as number;
      longest |= lengths[to] as number;
    }
    const count = to - from;
    const [tallyBytes, lengthBytes] = [largest > 255 ? 2 : 1, longest > 255 ? 2 : 1] as const;
    const bytes = count * (2 + tallyBytes + lengthBytes);
    const buffer = bytes < sharedBytesMin ? new ArrayBuffer(bytes) : new SharedArrayBuffer(bytes);
    const one = { first, count, tallyBytes, lengthBytes, buffer };
    const columns = openColumns(one);
    for (let i = 0; i < count; i++) columns.ordinals[i] = (ordinals[from + i] as number) - first;
    columns.tallies.set(tallies.subarray(from, to));
    columns.lengths.set(lengths.subarray(from, to));
    packed.push(one);
    from = to;
  }
  return packed;
}

export function openColumns({ first, count, tallyBytes, lengthBytes, buffer }: PackedColumns): Columns {
  // Numbers of two bytes come first, because they must not begin at an odd address.
  const open = (bytes: 1 | 2, at: number) =>
    bytes === 2 ? new Uint16Array(buffer, at, count) : new Uint8Array(buffer, at, count);
  const talliesFirst = tallyBytes >= lengthBytes;
  const tallies = open(tallyBytes, count * (talliesFirst ? 2 : 2 + lengthBytes));
  const lengths = open(lengthBytes, count * (talliesFirst ? 2 + tallyBytes : 2));
  return { first, ordinals: new Uint16Array(buffer, 0, count), tallies, lengths };
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
  const { first, ordinals, tallies, lengths } = openColumns(packed);
  return {
    ordinals: Int32Array.from(ordinals, (ordinal) => first + ordinal),
    tallies: Uint16Array.from(tallies),
    lengths: Uint16Array.from(lengths),
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
