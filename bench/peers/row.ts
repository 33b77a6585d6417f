import type { Text } from '../retrieval/collection.ts';

/** A program in one of the comparisons, and what was measured. */
export type Row = {
  program: string;
  version: string;
  /** What it guarantees for what was measured: durability, tenants, how it was called. */
  guarantees: string;
  /** By the name of the column. Each row of a comparison has the same columns. */
  figures: Record<string, string>;
};

/** A server with the same 10,000 entries. */
export type KvPeer = Pick<Row, 'program' | 'version' | 'guarantees'> & {
  /** The server's processes. */
  pids: number[];
  get(key: string): Promise<string | undefined>;
  put(key: string, value: string): Promise<unknown>;
  /** Adds 1 so that no concurrent increment is lost. */
  increment(key: string): Promise<unknown>;
  close(): Promise<void>;
};

/** An index of one collection. */
export type SearchPeer = {
  add(texts: readonly Text[]): Promise<unknown>;
  /** Ways to search it, each of which returns the ids of the best documents, best first. */
  searches: (Pick<Row, 'program' | 'version' | 'guarantees'> & { search(query: string): Promise<string[]> })[];
  close(): Promise<void>;
};

/** An engine of durable runs. */
export type RunsPeer = Pick<Row, 'program' | 'version' | 'guarantees'> & {
  /** Starts runs from 16 callers and waits for the last to end. */
  runMany(count: number): Promise<void>;
  /** Starts a run and waits for its result. */
  runOne(): Promise<void>;
  /** Throws if a run or one of its rows is missing. */
  check(): Promise<void>;
  close(): Promise<void>;
};

/** Turns a document into Markdown. */
export type Extractor<T> = Pick<Row, 'program' | 'version' | 'guarantees'> & { extract(document: T): Promise<string> };

/** Calls `run` with 0 to `count` - 1, by as many callers. */
export async function callEach(callers: number, count: number, run: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const call = async () => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: callers }, call));
}

export const ownVersion = 'this version';

export function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
