import { createSharedMemory, pageBytes, type ScannedBytes, scannedFrom } from '../../content/wide-scan.ts';

/** From this size on, codes are in memory that WebAssembly reads where they are. It takes at least 1 MiB. */
const scannedBytesMin = 4 * 1024 * 1024;
const scannedBytesMax = 4 * 1024 ** 3 - scannedFrom;

/** Blocks have at least so many bytes, so that most are alike. Memory that nothing writes to takes none. */
const blockBytesMin = 2 * 1024 * 1024;
/** So many bytes stay for the next searches. */
const keptBytesMax = 16 * 1024 * 1024;
/** Where a part of a block begins, so that numbers of any size may be there. */
const alignment = 16;

/** What was given back, the oldest first. */
const kept: SharedArrayBuffer[] = [];
let keptBytes = 0;

/**
 * Shared memory that a search needs for a while, with any content, and that the next one uses again. The garbage
 * collector does not count shared memory, so what each search allocates would stay until something else needs a
 * collection: hundreds of megabytes.
 */
export class BorrowedMemory {
  readonly #blocks: SharedArrayBuffer[] = [];
  readonly #tasksEnd: () => Promise<unknown>;
  /** The bytes of the last block that are in use. */
  #used = 0;
  #isOver = false;

  /** `tasksEnd` waits for the tasks of threads that may use the memory when it is given back. */
  constructor(tasksEnd: () => Promise<unknown>) {
    this.#tasksEnd = tasksEnd;
  }

  /** Room for so many bytes, until `giveBack`. */
  take(bytes: number): Uint8Array {
    if (this.#isOver) throw new Error('This memory was given back.');
    let block = this.#blocks.at(-1);
    if (block === undefined || this.#used + bytes > block.byteLength) {
      block = takeBlock(bytes);
      this.#blocks.push(block);
      this.#used = 0;
    }
    const part = new Uint8Array(block, this.#used, bytes);
    this.#used += Math.ceil(bytes / alignment) * alignment;
    return part;
  }

  copy(bytes: Uint8Array): Uint8Array {
    const part = this.take(bytes.length);
    part.set(bytes);
    return part;
  }

  /** Ends the use of the memory by its owner. Others get it once the threads that may still use it have ended. */
  giveBack(): void {
    this.#isOver = true;
    const blocks = this.#blocks.splice(0);
    if (blocks.length > 0) void this.#tasksEnd().then(() => keep(blocks));
  }
}

function keep(blocks: readonly SharedArrayBuffer[]): void {
  for (const block of blocks) {
    kept.push(block);
    keptBytes += block.byteLength;
  }
  while (keptBytes > keptBytesMax) keptBytes -= kept.shift()?.byteLength ?? keptBytes;
}

/** The block that was given back last, so that those that few searches at a time do not need are never written to. */
function takeBlock(bytes: number): SharedArrayBuffer {
  const at = kept.findLastIndex(({ byteLength }) => byteLength >= bytes);
  const [block] = at < 0 ? [] : kept.splice(at, 1);
  if (block === undefined) return new SharedArrayBuffer(Math.max(blockBytesMin, bytes));
  keptBytes -= block.byteLength;
  return block;
}

/**
 * Codes with room for at least this many bytes. Those of a shared memory stay where they are, so that earlier views of
 * it stay valid and see what is added.
 */
export function withRoomFor(codes: ScannedBytes, bytes: number): ScannedBytes {
  if (codes.bytes.byteLength >= bytes) return codes;
  const memory = bytes < scannedBytesMin || bytes > scannedBytesMax ? undefined : scannedMemory(codes, bytes);
  if (memory === undefined) {
    const larger = new Uint8Array(new SharedArrayBuffer(bytes));
    larger.set(codes.bytes);
    return { bytes: larger };
  }
  const larger = new Uint8Array(memory.buffer, scannedFrom, bytes);
  if (codes.memory === undefined) larger.set(codes.bytes);
  return { bytes: larger, memory };
}

/**
 * The memory of these codes, or a new one, with room for so many bytes. Undefined if the process may not have the
 * addresses for it, of which each takes 8 GiB: scans then copy the codes block by block.
 */
function scannedMemory({ memory }: ScannedBytes, bytes: number): ScannedBytes['memory'] {
  try {
    if (memory === undefined) return createSharedMemory(bytes);
    const missing = scannedFrom + bytes - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / pageBytes));
    return memory;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
