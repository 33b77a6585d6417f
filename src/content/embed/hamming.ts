import { add, assembleLoop, get, i32, loadWith, noValue, set, simd, v128, type WideLoop } from '../wasm.ts';

/**
 * Hamming distances of `query` to `count` codes that lie one after another in `codes`, written into `out` from
 * `offset`. Codes of 128 bits and more go through WebAssembly's 128-bit instructions, eight times as fast as the loop.
 */
export function hammingDistances(
  query: Uint32Array,
  codes: Uint32Array,
  count: number,
  out: Uint16Array,
  offset: number,
): void {
  const codeBytes = query.byteLength;
  if (codeBytes % 16 !== 0 || codeBytes > queryBytesMax) {
    countOneByOne(query, codes, count, out, offset);
    return;
  }
  const { bytes, run } = wideInstructions();
  bytes.set(new Uint8Array(query.buffer, query.byteOffset, codeBytes));
  const perBlock = Math.floor(blockBytes / codeBytes);
  for (let done = 0; done < count; done += perBlock) {
    const some = Math.min(perBlock, count - done);
    const start = codes.byteOffset + done * codeBytes;
    bytes.set(new Uint8Array(codes.buffer, start, some * codeBytes), queryBytesMax);
    run(0, queryBytesMax, some, codeBytes, resultsAt);
    out.set(new Uint16Array(bytes.buffer, resultsAt, some), offset + done);
  }
}

/** The same, bits counted in parallel within each word (Hacker's Delight, 5-1). */
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

// The module's memory: the query, a block of codes small enough for the processor's cache, and their distances.
const pages = 4;
const queryBytesMax = 4_096;
const blockBytes = 192 * 1024;
const resultsAt = queryBytesMax + blockBytes;

let loop: { bytes: Uint8Array; run: WideLoop } | undefined;

function wideInstructions() {
  loop ??= assembleLoop(loopBody(), pages);
  return loop;
}

function loopBody(): number[] {
  const [query, codes, count, codeBytes, out, at, sums] = [0, 1, 2, 3, 4, 5, 6];
  const lane = (number: number) => [...get(sums), ...simd(0x1b), number];
  return [
    ...[2, 1, i32, 1, v128], // locals: `at`, `sums`
    ...[0x02, noValue, 0x03, noValue], // block, loop: for each code
    ...[...get(count), 0x45, 0x0d, 1], // none left: leave the block
    ...[...simd(0x0c), ...new Array<number>(16).fill(0), ...set(sums)],
    ...[0x41, 0, ...set(at)],
    ...[0x03, noValue], // loop: for each 16 bytes of the code
    ...[...get(sums), ...get(query), ...get(at), 0x6a, ...loadWith(0x00), ...get(codes), ...loadWith(0x00)],
    ...[...simd(0x51), ...simd(0x62), ...simd(0x7d), ...simd(0x8e), ...set(sums)], // xor, count bits, widen, add
    ...[...add(codes, 16), ...set(codes), ...add(at, 16), ...set(at)],
    ...[...get(at), ...get(codeBytes), 0x49, 0x0d, 0, 0x0b],
    ...[...get(out), ...get(sums), ...simd(0x7f), ...set(sums)], // eight sums to four
    ...[...lane(0), ...lane(1), 0x6a, ...lane(2), 0x6a, ...lane(3), 0x6a, 0x3b, 0, 0],
    ...[...add(out, 2), ...set(out), ...add(count, 0x7f), ...set(count)], // 0x7f is −1
    ...[0x0c, 0, 0x0b, 0x0b, 0x0b],
  ];
}
