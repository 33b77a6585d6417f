import { FetchError } from '../content/fetch/errors.ts';

type Holder = { app: string; bytes: number; hasWaited: boolean };
type Waiting = { holder: Holder; bytes: number; go: () => void };

/** A body in memory. Call `free` when it is no longer needed. */
export type HeldBody = { bytes: Uint8Array; free: () => void };

/** No memory became free for the body within its deadline. The page is tried again. */
export class MemoryCrowded extends Error {}

/**
 * Memory for fetched bodies until a parser has read them: at most `bytesMax`, plus one body. An app may use as much
 * as is still free, so a single app gets half. A body that finds no room is not read further, which slows down its
 * sender. One of these bodies may always continue, so that half-read bodies never wait for each other.
 */
export class BodyMemory {
  readonly #bytesMax: number;
  readonly #ofApp = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  #used = 0;
  #favoured: Holder | undefined;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get used(): number {
    return this.#used;
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
    if (this.#favoured === holder) return true;
    const free = this.#bytesMax - this.#used;
    return (this.#ofApp.get(holder.app) ?? 0) + bytes <= free;
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
    this.#used += bytes;
    this.#ofApp.set(holder.app, (this.#ofApp.get(holder.app) ?? 0) + bytes);
  }

  #free(holder: Holder): void {
    const left = (this.#ofApp.get(holder.app) ?? 0) - holder.bytes;
    if (left > 0) this.#ofApp.set(holder.app, left);
    else this.#ofApp.delete(holder.app);
    this.#used -= holder.bytes;
    holder.bytes = 0;
    if (this.#favoured === holder) this.#favoured = undefined;
    this.#admit();
  }
}
