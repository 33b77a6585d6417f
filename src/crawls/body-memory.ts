import { FetchError } from '../content/fetch/errors.ts';
import { Shares } from '../fairness/shares.ts';

type Holder = { app: string; bytes: number; hasWaited: boolean };
type Waiting = { holder: Holder; bytes: number; go: () => void };

/** A body in memory. Call `free` when it is no longer needed. */
export type HeldBody = { bytes: Uint8Array; free: () => void };

/** No memory became free for the body within its deadline. The page is tried again. */
export class MemoryCrowded extends Error {}

/**
 * Memory for fetched bodies until a parser has read them, shared among apps: at most `bytesMax`, plus one body. A body that finds no room is not read further, which slows down its
 * sender. One of these bodies may always continue, so that half-read bodies never wait for each other.
 */
export class BodyMemory {
  readonly #memory: Shares;
  readonly #waiting: Waiting[] = [];
  #favoured: Holder | undefined;

  constructor(bytesMax: number) {
    this.#memory = new Shares(bytesMax);
  }

  get used(): number {
    return this.#memory.held;
  }

  /** Reads a body as memory becomes free. Throws what the body throws, or the signal's reason. */
  async read(app: string, body: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<HeldBody> {
    const holder: Holder = { app, bytes: 0, hasWaited: false };
    const chunks: Uint8Array[] = [];
    try {
      for await (const chunk of body) {
        await this.#grow(holder, chunk.byteLength, signal);
        chunks.push(chunk);
      }
    } catch (error) {
      this.#free(holder);
      if (holder.hasWaited && error instanceof FetchError && error.code === 'timeout')
        throw new MemoryCrowded('There was no memory for the page in time.', { cause: error });
      throw error;
    }
    return { bytes: Buffer.concat(chunks), free: () => this.#free(holder) };
  }

  async #grow(holder: Holder, bytes: number, signal: AbortSignal): Promise<void> {
    if (this.#mayGrow(holder, bytes)) return this.#add(holder, bytes);
    holder.hasWaited = true;
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', giveUp);
        this.#add(holder, bytes);
        resolve();
      };
      const waiting = { holder, bytes, go };
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(signal.reason);
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(waiting);
      this.#admit();
    });
  }

  #mayGrow(holder: Holder, bytes: number): boolean {
    return this.#favoured === holder || this.#memory.fits(holder.app, bytes);
  }

  #admit(): void {
    for (const waiting of [...this.#waiting]) {
      const { holder, bytes } = waiting;
      if (!this.#mayGrow(holder, bytes) && this.#favoured !== undefined) continue;
      if (!this.#mayGrow(holder, bytes)) this.#favoured = holder;
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      waiting.go();
    }
  }

  #add(holder: Holder, bytes: number): void {
    holder.bytes += bytes;
    this.#memory.add(holder.app, bytes);
  }

  #free(holder: Holder): void {
    this.#memory.add(holder.app, -holder.bytes);
    holder.bytes = 0;
    if (this.#favoured === holder) this.#favoured = undefined;
    this.#admit();
  }
}
