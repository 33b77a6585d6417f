import {
  createScan,
  get,
  loadWith,
  type ScannedBytes,
  type ScanParts,
  scanLocals,
  scanQueryBytesMax,
  set,
  simd,
} from '../wide-scan.ts';

/**
 * Writes the Hamming distances from `query` to `count` consecutive codes in `codes` into `out`, starting at `offset`.
 * Codes of 128 bits and more use WebAssembly's 128-bit instructions, which are eight times as fast as the loop.
 */
export function hammingDistances(
  query: Uint32Array,
  codes: ScannedBytes,
  count: number,
  out: Uint16Array,
  offset: number,
): void {
  const codeBytes = query.byteLength;
  if (codeBytes % 16 !== 0 || codeBytes > scanQueryBytesMax) {
    const { buffer, byteOffset, byteLength } = codes.bytes;
    countOneByOne(query, new Uint32Array(buffer, byteOffset, byteLength / 4), count, out, offset);
    return;
  }
  scan ??= createScan(distanceParts());
  const bytes = new Uint8Array(query.buffer, query.byteOffset, codeBytes);
  scan(bytes, codes, { from: 0, count, codeBytes }, (buffer, at, first, some) => {
    out.set(new Uint16Array(buffer, at, some), offset + first);
  });
}

/** The same, with bits counted in parallel within each word (Hacker's Delight, 5-1). */
function countOneByOne(query: Uint32Array, codes: Uint32Array, count: number, out: Uint16Array, offset: number): void {
  const words = query.length;
  let at = 0;
  for (let row = 0; row < count; row++) {
    let distance = 0;
    for (let word = 0; word < words; word++) {
      let bits = (codes[at] as number) ^ (query[word] as number);
      at += 1;
      bits -= (bits >>> 1) & 0x55555555;
      bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
      distance += Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
    }
    out[offset + row] = distance;
  }
}

let scan: ReturnType<typeof createScan> | undefined;

function distanceParts(): ScanParts {
  const { query, codes, at, sums } = scanLocals;
  return {
    step: [
      ...[...get(sums), ...get(query), ...get(at), 0x6a, ...loadWith(0x00), ...get(codes), ...loadWith(0x00)],
      ...[...simd(0x51), ...simd(0x62), ...simd(0x7d), ...simd(0x8e), ...set(sums)], // xor, count bits, widen, add
    ],
    queryBytesPerStep: 16,
    codeBytesPerStep: 16,
    finish: [...get(sums), ...simd(0x7f), ...set(sums)], // eight sums to four
    resultBytes: 2,
  };
}
