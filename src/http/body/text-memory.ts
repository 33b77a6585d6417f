import { AppError } from '../../lib/errors.ts';

/**
 * Blocks of memory that are reused. V8 starts a full collection for every few MB of new memory outside of its heap,
 * and a reused block is new only once. The memory budget of bodies bounds the blocks in use.
 */
export class BlockPool {
  readonly #free: Buffer[] = [];
  /** The lowest number of free blocks since the last trim: that many were not needed. */
  #unneeded = 0;
  #trimmer: NodeJS.Timeout | undefined;

  get freeBlocks(): number {
    return this.#free.length;
  }

  take(): Buffer {
    const block = this.#free.pop() ?? Buffer.allocUnsafeSlow(blockBytes);
    this.#unneeded = Math.min(this.#unneeded, this.#free.length);
    return block;
  }

  giveBack(blocks: Buffer[]): void {
    for (const block of blocks) this.#free.push(block);
    this.#trimmer ??= setInterval(() => this.#trim(), trimMs).unref();
  }

  #trim(): void {
    this.#free.splice(0, this.#unneeded);
    this.#unneeded = this.#free.length;
    if (this.#unneeded > 0) return;
    clearInterval(this.#trimmer);
    this.#trimmer = undefined;
  }
}

const blockBytes = 256 * 1024;
const trimMs = 60_000;
/** V8 would not allocate strings made of larger pieces in its young generation. */
const pieceBytes = 64 * 1024;
/** Shared by all bodies of this process. */
const sharedPool = new BlockPool();

/** The long strings of one body. */
export class TextMemory {
  readonly #pool: BlockPool;
  #blocks: Buffer[] = [];
  #bytes = 0;
  #users = 1;

  constructor(pool = sharedPool) {
    this.#pool = pool;
  }

  get bytes(): number {
    return this.#bytes;
  }

  append(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      const inBlock = this.#bytes % blockBytes;
      if (inBlock === 0) this.#blocks.push(this.#pool.take());
      const part = chunk.subarray(at, at + blockBytes - inBlock);
      this.#blocks.at(-1)?.set(part, inBlock);
      this.#bytes += part.length;
      at += part.length;
    }
  }

  /** Yields the bytes from `start` to `end` in pieces. Do not use a piece after the next step. */
  *read(start: number, end: number): Generator<Uint8Array> {
    for (let at = start; at < end; ) {
      const block = this.#blocks[Math.floor(at / blockBytes)];
      // The blocks may hold the body of another tenant by now.
      if (block === undefined) throw new AppError('invalid_json', 'The connection closed while the body was in use.');
      const inBlock = at % blockBytes;
      const length = Math.min(end - at, pieceBytes, blockBytes - inBlock);
      yield block.subarray(inBlock, inBlock + length);
      at += length;
    }
  }

  /** Adds a user of the memory. Each user must release it once. */
  retain(): void {
    this.#users += 1;
  }

  /** Frees the blocks when the last user releases them. */
  release(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#pool.giveBack(this.#blocks);
    this.#blocks = [];
  }
}
