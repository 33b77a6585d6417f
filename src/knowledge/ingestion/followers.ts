import { setTimeout as wait } from 'node:timers/promises';
import type { ItemRow, QueuedItem } from './store.ts';

/** Pushes that are read at the same time have at most this many bytes together. */
const bytesMax = 1024 * 1024;
/** How long a document that has been read waits for the one that was pushed after it. */
const stalledMs = 2_000;

/** A queued push was cancelled or deleted while its document was read. */
export class FollowersChanged extends Error {}

/** Whether an item is a new document, whatever else its source has. */
export function isPush({ documentId, dedupe }: ItemRow): boolean {
  return documentId === null && !dedupe;
}

/** Those of these items, from the first on, that are small pushes. */
export function takeFollowers(queued: readonly QueuedItem[]): ItemRow[] {
  let bytes = 0;
  const end = queued.findIndex((item) => {
    bytes += item.size ?? Number.POSITIVE_INFINITY;
    return item.kind !== 'push' || !isPush(item) || bytes > bytesMax;
  });
  return queued.slice(0, end < 0 ? queued.length : end);
}

/** Waits for these readings in their order, until one fails or takes long. Returns the results of those before it. */
export async function takeRead<Result>(readings: readonly Promise<Result>[]): Promise<Result[]> {
  const results: Result[] = [];
  for (const reading of readings) {
    const late = new AbortController();
    const one = await Promise.race([
      reading.then(
        (result) => ({ result }),
        () => undefined,
      ),
      wait(stalledMs, undefined, { ref: false, signal: late.signal }).catch(() => undefined),
    ]);
    late.abort();
    if (one === undefined) return results;
    results.push(one.result);
  }
  return results;
}
