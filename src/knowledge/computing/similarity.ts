import { codeHeaderBytes } from '../../content/learn/codes.ts';
import { dotProducts } from '../../content/learn/dots.ts';
import type { ScannedBytes } from '../../content/wide-scan.ts';
import { allowedBit, sourceOfRow } from '../search/rank.ts';

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
  /** For each row, its cosine times the strength of the chunk's code; 0 if the cosine is not positive. */
  scores: Float32Array;
  cosineOf(row: number): number;
};

let scratch = new Float32Array(0);

/** How similar each allowed row is to the query. The scores are valid until the next call. */
export function compareRows(sources: readonly ComparedSource[], rows: Uint8Array): Similarities {
  if (scratch.length < rows.length) scratch = new Float32Array(rows.length);
  const scores = scratch.subarray(0, rows.length).fill(0);
  for (const source of sources) if (source.compared) compareSource(source, source.compared, rows, scores);
  return {
    scores,
    cosineOf(row) {
      const { base, compared } = sourceOfRow(sources, row);
      const strength = compared?.codes.strengths[row - base - compared.codes.firstOrdinal] ?? 0;
      return strength === 0 ? 0 : (scores[row] as number) / strength;
    },
  };
}

function compareSource(
  source: ComparedSource,
  { direction, codes }: { direction: Float32Array; codes: ModelCodes },
  rows: Uint8Array,
  scores: Float32Array,
): void {
  const { inverses, strengths } = codes;
  const from = source.firstOrdinal - codes.firstOrdinal;
  const count = source.nextOrdinal - source.firstOrdinal;
  const firstRow = source.base + source.firstOrdinal;
  dotProducts(direction, codes.directions, from, count, (products, first, scale) => {
    for (let i = 0; i < products.length; i++) {
      const product = Math.fround((products[i] as number) * scale);
      const row = firstRow + first + i;
      if (product <= 0 || ((rows[row] as number) & allowedBit) === 0) continue;
      const at = from + first + i;
      scores[row] = product * (inverses[at] as number) * (strengths[at] as number);
    }
  });
}

/** Codes of chunks with consecutive ordinals, as they are stored. */
export type CodeRun = { firstOrdinal: number; chunkCount: number; content: Uint8Array };

export function addRun(codes: ModelCodes, { firstOrdinal, chunkCount, content }: CodeRun): void {
  const { dimensions, inverses, strengths } = codes;
  const directions = signedBytes(codes);
  const size = codeHeaderBytes + dimensions;
  const bytes = new Int8Array(content.buffer, content.byteOffset, content.byteLength);
  const numbers = new DataView(content.buffer, content.byteOffset, content.byteLength);
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
  }
}

export function signedBytes({ directions: { bytes } }: ModelCodes): Int8Array {
  return new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
