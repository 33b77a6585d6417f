import { codeHeaderBytes } from '../../content/learn/codes.ts';
import { dotProduct, dotProducts, type RoundedDirection, roundDirection } from '../../content/learn/dots.ts';
import type { ScannedBytes } from '../../content/wide-scan.ts';
import { allowedBit, BestRows, type Ranked, sourceOfRow } from '../search/rank.ts';
import { withRoomFor } from './shared.ts';

/** All chunks of one model, by ordinal from the first. Chunks without a code are zero. */
export type ModelCodes = {
  codeVersion: number;
  firstOrdinal: number;
  dimensions: number;
  /** One signed byte for each dimension. */
  directions: ScannedBytes;
  /** One divided by the length of each direction. */
  inverses: Float32Array;
  strengths: Float32Array;
  /** One number that no product of an inverse with its strength exceeds. Threads that add codes raise it. */
  most: Float32Array;
};

/** A source of the scope. Without `compared`, its model knows no word of the query. */
export type ComparedSource = {
  base: number;
  firstOrdinal: number;
  nextOrdinal: number;
  modelVersion: number;
  compared?: { direction: Float32Array; codes: ModelCodes };
};

export type Similarities = {
  /** The most similar allowed rows, best first: by their cosine times the strength of the chunk's code. */
  best(count: number): Ranked[];
  /** That product for an allowed row; 0 if the cosine is not positive. */
  scoreOf(row: number): number;
  cosineOf(row: number): number;
};

/** How similar the rows are to the query. Few of them are among the best, so the others are not kept. */
export function compareRows(sources: readonly ComparedSource[], rows: Uint8Array): Similarities {
  const opened = sources.map(openSource);
  const placeOf = (row: number) => {
    const { base, compared } = sourceOfRow(opened, row);
    return compared && { compared, at: row - base - compared.codes.firstOrdinal };
  };
  return {
    best(count) {
      const best = new BestRows(count);
      for (const source of opened) if (source.compared) compareSource(source, source.compared, rows, best);
      return best.finish();
    },
    scoreOf(row) {
      const place = placeOf(row);
      return place === undefined ? 0 : scoreOne(place.compared, place.at);
    },
    cosineOf(row) {
      const place = placeOf(row);
      const strength = place?.compared.codes.strengths[place.at] ?? 0;
      return place === undefined || strength === 0 ? 0 : scoreOne(place.compared, place.at) / strength;
    },
  };
}

type Compared = { direction: RoundedDirection; codes: ModelCodes; bytes: Int8Array };
type OpenSource = Omit<ComparedSource, 'compared'> & { compared: Compared | undefined };

function openSource({ compared, ...source }: ComparedSource): OpenSource {
  if (compared === undefined) return { ...source, compared };
  const { direction, codes } = compared;
  return { ...source, compared: { direction: roundDirection(direction), codes, bytes: signedBytes(codes) } };
}

function compareSource(source: OpenSource, { direction, codes }: Compared, rows: Uint8Array, best: BestRows): void {
  const { inverses, strengths } = codes;
  const { scale } = direction;
  const from = source.firstOrdinal - codes.firstOrdinal;
  const count = source.nextOrdinal - source.firstOrdinal;
  const firstRow = source.base + source.firstOrdinal;
  // No score that is this much smaller becomes one of the best by rounding.
  const leastFor = (floor: number) => Math.max(1, ((1 - 1e-6) * floor) / (scale * (codes.most[0] as number)));
  dotProducts(direction, codes.directions, from, count, (products, first) => {
    let { floor } = best;
    let least = leastFor(floor);
    for (let i = 0; i < products.length; i++) {
      const product = products[i] as number;
      // Most products are too small, whatever else decides.
      if (product < least) continue;
      const at = from + first + i;
      const score = scoreOfProduct(product * scale, inverses[at] as number, strengths[at] as number);
      const row = firstRow + first + i;
      if (score < floor || score <= 0 || ((rows[row] as number) & allowedBit) === 0) continue;
      best.add(row, score);
      if (best.floor === floor) continue;
      floor = best.floor;
      least = leastFor(floor);
    }
  });
}

/** The score of one chunk, the same as among all of them. */
function scoreOne({ direction, codes, bytes }: Compared, at: number): number {
  const product = dotProduct(direction, bytes, at);
  if (product <= 0) return 0;
  return scoreOfProduct(product * direction.scale, codes.inverses[at] as number, codes.strengths[at] as number);
}

/** Rounded to 32 bits, so that equal scores are equal in all rankings. */
function scoreOfProduct(product: number, inverse: number, strength: number): number {
  return Math.fround(Math.fround(product) * inverse * strength);
}

export function emptyCodes(firstOrdinal: number, dimensions: number): ModelCodes {
  const none = {
    directions: { bytes: new Uint8Array(0) },
    inverses: new Float32Array(0),
    strengths: new Float32Array(0),
    most: new Float32Array(new SharedArrayBuffer(Float32Array.BYTES_PER_ELEMENT)),
  };
  return { codeVersion: 0, firstOrdinal, dimensions, ...none };
}

/** The same codes with room for the ordinals below `nextOrdinal`. */
export function withRoomUpTo(codes: ModelCodes, nextOrdinal: number): ModelCodes {
  const size = Math.ceil((nextOrdinal - codes.firstOrdinal) * 1.1) + 64;
  const directions = withRoomFor(codes.directions, size * codes.dimensions);
  const inverses = new Float32Array(new SharedArrayBuffer(size * 4));
  const strengths = new Float32Array(new SharedArrayBuffer(size * 4));
  inverses.set(codes.inverses);
  strengths.set(codes.strengths);
  return { ...codes, directions, inverses, strengths };
}

/** Codes of chunks with consecutive ordinals, as they are stored. */
export type CodeRun = { firstOrdinal: number; chunkCount: number; content: Uint8Array };

export function addRun(codes: ModelCodes, { firstOrdinal, chunkCount, content }: CodeRun): void {
  const { dimensions, inverses, strengths } = codes;
  const directions = signedBytes(codes);
  const size = codeHeaderBytes + dimensions;
  const bytes = new Int8Array(content.buffer, content.byteOffset, content.byteLength);
  const numbers = new DataView(content.buffer, content.byteOffset, content.byteLength);
  let most = 0;
  for (let i = 0; i < chunkCount; i++) {
    const at = firstOrdinal + i - codes.firstOrdinal;
    if (at < 0 || at >= inverses.length) continue;
    const from = i * size + codeHeaderBytes;
    let squares = 0;
    for (let j = 0; j < dimensions; j++) {
      const value = bytes[from + j] as number;
      directions[at * dimensions + j] = value;
      squares += value * value;
    }
    inverses[at] = squares === 0 ? 0 : 1 / Math.sqrt(squares);
    strengths[at] = numbers.getFloat32(i * size, true);
    most = Math.max(most, (inverses[at] as number) * (strengths[at] as number));
  }
  raise(codes.most, most);
}

/** Raises a shared number. Several threads may do so at once: positive floats are in the same order as their bits. */
function raise(shared: Float32Array, to: number): void {
  const bits = new Int32Array(shared.buffer, shared.byteOffset, 1);
  // Rounded up, since it is a bound.
  const wanted = new Int32Array(Float32Array.of(to * (1 + 2e-7)).buffer)[0] as number;
  for (let known = Atomics.load(bits, 0); known < wanted; )
    known = Atomics.compareExchange(bits, 0, known, wanted) === known ? wanted : Atomics.load(bits, 0);
}

export function signedBytes({ directions: { bytes } }: ModelCodes): Int8Array {
  return new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
