import { isDeepStrictEqual } from 'node:util';
import type { SourceRow } from '../sources/store.ts';
import { type Reading, startReading } from './read-ahead.ts';
import type { ItemRow } from './store.ts';

/** How long one job keeps ingesting pushes of a source before other jobs of the app have their turn. */
const turnMsMax = 2_000;

/**
 * The pushes of one source that one job ingests, one group after the other. While a group is written, the next one is
 * read.
 */
export class PushTurn<Work> {
  readonly #endsAtMs = performance.now() + turnMsMax;
  readonly #over = new AbortController();
  readonly #signal: AbortSignal;
  readonly #readings = new Map<string, Reading<ItemRow, Work>>();
  #source: SourceRow | undefined;
  #next: string | undefined;
  #isLast = false;

  /** @param stopping is aborted when the job has to stop */
  constructor(stopping: AbortSignal | undefined) {
    this.#signal = stopping ? AbortSignal.any([stopping, this.#over.signal]) : this.#over.signal;
  }

  /**
   * Whether the job may run another ingestion after the current one. This is decided when the current one begins,
   * so that no work of reading ahead is wasted.
   */
  get mayContinue(): boolean {
    return !this.#isLast && !this.#signal.aborted;
  }

  /** Sets the ingestion that the job runs after the current one. It has become active. */
  continueWith(ingestionId: string | undefined): void {
    this.#next = ingestionId;
  }

  /** The ingestion that the job runs now, if there is one. */
  takeNext(): string | undefined {
    this.#isLast = performance.now() >= this.#endsAtMs;
    const next = this.#next;
    this.#next = undefined;
    return next;
  }

  /** Starts to read items, except those that were read ahead. Their readings are kept until they are dropped. */
  read(
    source: SourceRow,
    items: readonly ItemRow[],
    read: (item: ItemRow, signal: AbortSignal) => Promise<Work>,
  ): Reading<ItemRow, Work>[] {
    // Readings depend on the language and the embedder of the source, among others.
    if (!isDeepStrictEqual(this.#source, source)) this.#readings.clear();
    this.#source = source;
    return items.map((item) => {
      const reading = this.#readings.get(item.ingestionId) ?? startReading(item, (it) => read(it, this.#signal));
      this.#readings.set(item.ingestionId, reading);
      return reading;
    });
  }

  /** Drops the readings of items that were written, or failed. */
  drop(items: readonly ItemRow[]): void {
    for (const { ingestionId } of items) this.#readings.delete(ingestionId);
  }

  /** Aborts what is still being read. It is read again by the job of its ingestion. */
  end(): void {
    this.#over.abort();
  }
}
