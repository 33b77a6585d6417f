import { programFile } from '../../lib/program-file.ts';
import { ParserProcess } from '../parse/pool/process.ts';
import type { StemLanguage } from '../terms.ts';
import { packBatch, type TermBytes } from './batch.ts';

const workerFile = programFile('./worker', import.meta.url);
/**
 * The time limit of one step. The longest, the decomposition of the largest sample, takes half a minute on a slow
 * machine.
 */
const stepDeadlineMs = 10 * 60_000;
const batchBytesMax = 4 * 1024 * 1024;

/**
 * A child process that trains one model, confined like a parser: texts are untrusted, and a decomposition takes
 * seconds and memory that no request should wait for.
 */
export class LearningProcess {
  readonly #process: ParserProcess;
  readonly #signal: AbortSignal | undefined;

  constructor(memoryMb: number, signal: AbortSignal | undefined) {
    this.#process = new ParserProcess({ memoryMb, workerFile });
    // A failed start is reported where `ready` is awaited.
    this.#process.ready.catch(() => {});
    this.#signal = signal;
  }

  /** Reads the sample's postings. `taken` has one byte per ordinal from the first: 1 for a chunk of the sample. */
  async read(
    { taken, ...fields }: { languages: StemLanguage[]; dimensions: number; firstOrdinal: number; taken: Uint8Array },
    postings: AsyncIterable<readonly TermBytes[]>,
  ): Promise<void> {
    await this.#process.ready;
    await this.#run('start', taken, fields);
    await this.#send('postings', postings);
  }

  /** Trains on what was read. Returns the number of words that have a vector. */
  async train(): Promise<number> {
    return (await this.#run('train')).value as number;
  }

  /** The trained words from a position on: their packed vectors, and the average frequency of each word in a chunk. */
  async readWords(from: number, count: number): Promise<{ terms: string[]; frequencies: number[]; vectors: Buffer }> {
    const { value, blobs } = await this.#run('words', undefined, { from, count });
    return { ...(value as { terms: string[]; frequencies: number[] }), vectors: blobs[0] ?? Buffer.alloc(0) };
  }

  /** The codes of the chunks with ordinals from `from` to before `to`, computed from their postings. */
  async fold(from: number, to: number, postings: AsyncIterable<readonly TermBytes[]>): Promise<Buffer> {
    await this.#run('start-folding', undefined, { from, to });
    await this.#send('fold', postings);
    return (await this.#run('codes')).blobs[0] ?? Buffer.alloc(0);
  }

  close(): Promise<void> {
    return this.#process.kill();
  }

  async #send(task: string, postings: AsyncIterable<readonly TermBytes[]>): Promise<void> {
    let batch: TermBytes[] = [];
    let bytes = 0;
    for await (const rows of postings)
      for (const row of rows) {
        batch.push(row);
        bytes += row.postings.length;
        if (bytes < batchBytesMax) continue;
        await this.#run(task, packBatch(batch));
        batch = [];
        bytes = 0;
      }
    if (batch.length > 0) await this.#run(task, packBatch(batch));
  }

  #run(task: string, bytes: Uint8Array = new Uint8Array(), fields: Record<string, unknown> = {}) {
    return this.#process.run(task, bytes, fields, { signal: this.#signal, deadlineMs: stepDeadlineMs });
  }
}
