/** The part of WebAssembly that is used here. Node's types leave it to those of browsers. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: { memory: { buffer: ArrayBuffer }; run: Run } };
};

type Run = (query: number, codes: number, count: number, queryBytes: number, out: number) => void;

/** How a scan compares a query with one code: instructions on the variables in `scanLocals`. */
export type ScanParts = {
  /** Adds one step to `sums`, from `query` + `at` and from `codes`. */
  step: number[];
  queryBytesPerStep: number;
  codeBytesPerStep: number;
  /** Leaves four 32-bit sums in `sums`. Their total is the result. */
  finish: number[];
  resultBytes: 2 | 4;
};

/**
 * A loop in WebAssembly's 128-bit instructions that compares a query with many consecutive codes. The caller writes
 * the query and the codes, calls `run` and reads the results.
 */
export type Scan = {
  query: Uint8Array;
  codes: Uint8Array;
  results: ArrayBuffer;
  run(count: number, queryBytes: number): void;
};

// The module's memory: the query, a block of codes small enough for the processor's cache, and the results.
const pages = 4;
export const scanQueryBytesMax = 4_096;
export const scanBlockBytes = 192 * 1024;
export const scanResultsAt = scanQueryBytesMax + scanBlockBytes;

/** The loop's variables: its five parameters, the position in the query, and the sums of one code. */
export const scanLocals = { query: 0, codes: 1, count: 2, queryBytes: 3, out: 4, at: 5, sums: 6 };

export function createScan(parts: ScanParts): Scan {
  const { buffer, run } = assemble(loopBody(parts));
  return {
    query: new Uint8Array(buffer, 0, scanQueryBytesMax),
    codes: new Uint8Array(buffer, scanQueryBytesMax, scanBlockBytes),
    results: buffer,
    run: (count, queryBytes) => run(0, scanQueryBytesMax, count, queryBytes, scanResultsAt),
  };
}

function loopBody(parts: ScanParts): number[] {
  const { codes, count, queryBytes, out, at, sums } = scanLocals;
  const lane = (number: number) => [...get(sums), ...simd(0x1b), number];
  const store = parts.resultBytes === 2 ? 0x3b : 0x36;
  return [
    ...[2, 1, i32, 1, v128], // locals: `at`, `sums`
    ...[0x02, noValue, 0x03, noValue], // block, loop: for each code
    ...[...get(count), 0x45, 0x0d, 1], // none left: leave the block
    ...[...simd(0x0c), ...new Array<number>(16).fill(0), ...set(sums)],
    ...[0x41, 0, ...set(at)],
    ...[0x03, noValue], // loop: for each step
    ...parts.step,
    ...[...add(codes, parts.codeBytesPerStep), ...set(codes), ...add(at, parts.queryBytesPerStep), ...set(at)],
    ...[...get(at), ...get(queryBytes), 0x49, 0x0d, 0, 0x0b],
    ...parts.finish,
    ...[...get(out), ...lane(0), ...lane(1), 0x6a, ...lane(2), 0x6a, ...lane(3), 0x6a, store, 0, 0],
    ...[...add(out, parts.resultBytes), ...set(out), ...add(count, 0x7f), ...set(count)], // 0x7f is −1
    ...[0x0c, 0, 0x0b, 0x0b, 0x0b],
  ];
}

/** The instructions that the loop uses (WebAssembly core specification, chapter 5: binary format). */
const i32 = 0x7f;
const v128 = 0x7b;
const noValue = 0x40;
export const get = (local: number) => [0x20, local];
export const set = (local: number) => [0x21, local];
/** The local variable plus a constant between −64 and 63, as seven bits. */
const add = (local: number, by: number) => [...get(local), 0x41, by, 0x6a];
/** An instruction on 128 bits. */
export const simd = (instruction: number) =>
  instruction < 0x80 ? [0xfd, instruction] : [0xfd, instruction & 0xff, 0x01];
/** Load instructions without alignment or offset. */
export const loadWith = (instruction: number) => [...simd(instruction), 0, 0];

/** Assembles a module with a memory of 256 KiB and one function, `run`, which takes five parameters. */
export function assemble(body: number[]): { buffer: ArrayBuffer; run: Run } {
  const named = (name: string) => [name.length, ...Buffer.from(name)];
  const section = (id: number, content: number[]) => [id, ...unsigned(content.length), ...content];
  const module = Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 5, i32, i32, i32, i32, i32, 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, pages]),
    ...section(7, [2, ...named('memory'), 2, 0, ...named('run'), 0, 0]),
    ...section(10, [1, ...unsigned(body.length), ...body]),
  ]);
  const { memory, run } = new WebAssembly.Instance(new WebAssembly.Module(module)).exports;
  return { buffer: memory.buffer, run };
}

/** A number below 16,384 in LEB128. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, value >>> 7];
}
