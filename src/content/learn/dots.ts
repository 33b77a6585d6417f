import { add, assembleLoop, get, i32, loadWith, noValue, set, simd, v128, type WideLoop } from '../wasm.ts';

/**
 * The products of a direction with `count` codes of signed bytes, one after another from the code `from`, written into
 * `out` from its beginning. The direction is rounded to 16 bits; its dimensions are a multiple of 8. WebAssembly's
 * 128-bit instructions take a fifth of the time of a plain loop.
 */
export function dotProducts(
  direction: Float32Array,
  codes: Int8Array,
  from: number,
  count: number,
  out: Float32Array,
): void {
  const dimensions = direction.length;
  const { bytes, run } = wideInstructions();
  let largest = 0;
  for (const value of direction) largest = Math.max(largest, Math.abs(value));
  const scale = largest / 32_767;
  if (scale === 0) return void out.fill(0, 0, count);
  new Int16Array(bytes.buffer, 0, dimensions).set(direction.map((value) => Math.round(value / scale)));
  const perBlock = Math.floor(blockBytes / dimensions / 4);
  const results = new Int32Array(bytes.buffer, resultsAt, perBlock);
  for (let done = 0; done < count; done += perBlock) {
    const some = Math.min(perBlock, count - done);
    const start = (from + done) * dimensions;
    bytes.set(new Uint8Array(codes.buffer, codes.byteOffset + start, some * dimensions), codesAt);
    run(0, codesAt, some, dimensions * 2, resultsAt);
    for (let i = 0; i < some; i++) out[done + i] = (results[i] as number) * scale;
  }
}

// The module's memory: the direction, a block of codes small enough for the processor's cache, and their products.
const pages = 4;
const codesAt = 4_096;
const blockBytes = 192 * 1024;
const resultsAt = codesAt + blockBytes;

let loop: { bytes: Uint8Array; run: WideLoop } | undefined;

function wideInstructions() {
  loop ??= assembleLoop(loopBody(), pages);
  return loop;
}

function loopBody(): number[] {
  const [direction, codes, count, directionBytes, out, at, sums] = [0, 1, 2, 3, 4, 5, 6];
  const lane = (number: number) => [...get(sums), ...simd(0x1b), number];
  return [
    ...[2, 1, i32, 1, v128], // locals: `at`, `sums`
    ...[0x02, noValue, 0x03, noValue], // block, loop: for each code
    ...[...get(count), 0x45, 0x0d, 1], // none left: leave the block
    ...[...simd(0x0c), ...new Array<number>(16).fill(0), ...set(sums)],
    ...[0x41, 0, ...set(at)],
    ...[0x03, noValue], // loop: for each eight dimensions
    ...[...get(codes), ...loadWith(0x01)], // eight bytes, widened to 16 bits each
    ...[...get(direction), ...get(at), 0x6a, ...loadWith(0x00)],
    ...[...simd(0xba), ...get(sums), ...simd(0xae), ...set(sums)], // products of pairs, added
    ...[...add(codes, 8), ...set(codes), ...add(at, 16), ...set(at)],
    ...[...get(at), ...get(directionBytes), 0x49, 0x0d, 0, 0x0b],
    ...[...get(out), ...lane(0), ...lane(1), 0x6a, ...lane(2), 0x6a, ...lane(3), 0x6a, 0x36, 0, 0],
    ...[...add(out, 4), ...set(out), ...add(count, 0x7f), ...set(count)], // 0x7f is −1
    ...[0x0c, 0, 0x0b, 0x0b, 0x0b],
  ];
}
