/** The part of WebAssembly that is used here. Node's types leave it to those of browsers. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: { shared: { memory: SharedMemory } }) => { exports: { run: Run } };
  Memory: new (size: { initial: number; maximum: number; shared: true }) => SharedMemory;
};

type Run = (query: number, codes: number, count: number, queryBytes: number, out: number) => void;

/** Memory of WebAssembly that several threads use. It grows in place: what was there stays where it is. */
type SharedMemory = { readonly buffer: SharedArrayBuffer; grow(pages: number): number };

/** Codes to scan. Those in a shared memory are read in place; others are copied into one in blocks. */
export type ScannedBytes = { bytes: Uint8Array; memory?: SharedMemory | undefined };

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
 * Compares a query with `count` consecutive codes, starting at the code `from`, in WebAssembly's 128-bit instructions.
 * Calls `take` for each block of them with the results, which are valid until it returns, and the place of the first.
 */
type Scan = (
  query: Uint8Array,
  codes: ScannedBytes,
  place: { from: number; count: number; codeBytes: number },
  take: (buffer: SharedArrayBuffer, at: number, first: number, count: number) => void,
) => void;

export const pageBytes = 65_536;
const pagesMax = 65_536;
export const scanQueryBytesMax = 4_096;
const resultBytesMax = pageBytes - scanQueryBytesMax;
/** A block of codes that is copied is small enough for the processor's cache. */
const copiedBytes = 3 * pageBytes;
/** Threads that may scan one memory: each has a page of it for its query and results. */
export const scanningThreadsMax = 32;
/** Where the codes in a shared memory begin. */
export const scannedFrom = scanningThreadsMax * pageBytes;

/** The page of this thread. */
let ownPage = 0;

/** Gives this thread its own page in every shared memory. The main thread of a process has the first one. */
export function useScanPage(page: number): void {
  ownPage = page;
}

/** Shared memory with room for this many bytes of codes, of which 4 GiB less the pages of threads are the most. */
export function createSharedMemory(bytes: number): SharedMemory {
  const initial = Math.ceil((scannedFrom + bytes) / pageBytes);
  return new WebAssembly.Memory({ initial, maximum: pagesMax, shared: true });
}

/** The loop's variables: its five parameters, the position in the query, and the sums of one code. */
export const scanLocals = { query: 0, codes: 1, count: 2, queryBytes: 3, out: 4, at: 5, sums: 6 };

export function createScan(parts: ScanParts): Scan {
  const module = assembleModule(loopBody(parts));
  const instantiate = (memory: SharedMemory) => new WebAssembly.Instance(module, { shared: { memory } }).exports.run;
  const runOf = new WeakMap<SharedMemory, Run>();
  let own: { memory: SharedMemory; run: Run } | undefined;

  return (query, { bytes, memory }, { from, count, codeBytes }, take) => {
    if (memory === undefined && own === undefined) {
      const pages = 1 + copiedBytes / pageBytes;
      const ofThread = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
      own = { memory: ofThread, run: instantiate(ofThread) };
    }
    const scanned = memory ?? (own as { memory: SharedMemory }).memory;
    const run = memory === undefined ? (own as { run: Run }).run : (runOf.get(memory) ?? instantiate(memory));
    if (memory !== undefined) runOf.set(memory, run);
    const { buffer } = scanned;
    const queryAt = memory === undefined ? 0 : ownPage * pageBytes;
    new Uint8Array(buffer, queryAt, query.byteLength).set(query);
    const resultsAt = queryAt + scanQueryBytesMax;
    const resultsPerBlock = Math.floor(resultBytesMax / parts.resultBytes);
    const perBlock =
      memory === undefined ? Math.min(resultsPerBlock, Math.floor(copiedBytes / codeBytes)) : resultsPerBlock;
    for (let done = 0; done < count; done += perBlock) {
      const some = Math.min(perBlock, count - done);
      const start = (from + done) * codeBytes;
      let codesAt = bytes.byteOffset + start;
      if (memory === undefined) {
        codesAt = pageBytes;
        new Uint8Array(buffer, codesAt, some * codeBytes).set(bytes.subarray(start, start + some * codeBytes));
      }
      run(queryAt, codesAt, some, (codeBytes / parts.codeBytesPerStep) * parts.queryBytesPerStep, resultsAt);
      take(buffer, resultsAt, done, some);
    }
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

/** Assembles a module with one function, `run`, which takes five parameters and uses a shared memory. */
function assembleModule(body: number[]): object {
  const named = (name: string) => [name.length, ...Buffer.from(name)];
  const section = (id: number, content: number[]) => [id, ...unsigned(content.length), ...content];
  // The last bytes of the import: shared memory of at least no page and at most 65,536, which is 0x80 0x80 0x04.
  const memory = [1, ...named('shared'), ...named('memory'), 2, 3, 0, 0x80, 0x80, 0x04];
  const bytes = Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 5, i32, i32, i32, i32, i32, 0]),
    ...section(2, memory),
    ...section(3, [1, 0]),
    ...section(7, [1, ...named('run'), 0, 0]),
    ...section(10, [1, ...unsigned(body.length), ...body]),
  ]);
  return new WebAssembly.Module(bytes);
}

/** The same with its own memory of some pages. */
export function assemble(body: number[], pages: number): { buffer: SharedArrayBuffer; run: Run } {
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const { run } = new WebAssembly.Instance(assembleModule(body), { shared: { memory } }).exports;
  return { buffer: memory.buffer, run };
}

/** A number below 16,384 in LEB128. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, value >>> 7];
}
