import { setTimeout as wait } from 'node:timers/promises';
import type { ParserPool } from '../../content/parse/pool/pool.ts';

/** Documents that are read while earlier ones are written: at least, at most, and their bytes if more. */
const readAheadMin = 4;
const readAheadMax = 32;
const readAheadBytesMax = 1024 * 1024;
/** At most this many items are written in one transaction. */
export const writtenMax = 16;
/** How long a document that has been read waits for those after it. */
const gatherMs = 100;

/** An item of known size in bytes, or null if it may be large. */
type Sized = { size: number | null };
export type Reading<Item, Work> = { item: Item; work: Promise<Work> };

/**
 * Reads items in their order, several at a time. Yields those that have been read soon after each other, so that they can
 * be written together. Throws what the reading of an item throws, once those before it have been yielded.
 */
export async function* readAhead<Item extends Sized, Work>(
  parser: Pick<ParserPool, 'counts'>,
  items: readonly Item[],
  read: (item: Item) => Promise<Work>,
): AsyncGenerator<Reading<Item, Work>[]> {
  const ahead: (Reading<Item, Work> & { isRead: boolean })[] = [];
  for (let next = 0; next < items.length || ahead.length > 0; ) {
    for (let item = items[next]; item && mayReadAhead(parser, ahead, item); item = items[next]) {
      ahead.push(startReading(item, read));
      next += 1;
    }
    await ahead[0]?.work;
    const together = Promise.allSettled(ahead.slice(0, writtenMax).map(({ work }) => work));
    await Promise.race([together, wait(gatherMs, undefined, { ref: false })]);
    const unread = ahead.findIndex(({ isRead }) => !isRead);
    yield ahead.splice(0, Math.min(unread < 0 ? ahead.length : unread, writtenMax));
  }
}

/** Whether to read an item before earlier ones are written: many if they are small and the parsers have no queue. */
function mayReadAhead(
  parser: Pick<ParserPool, 'counts'>,
  ahead: readonly { item: Sized }[],
  { size: own }: Sized,
): boolean {
  if (ahead.length < readAheadMin) return true;
  if (ahead.length >= readAheadMax || parser.counts.waiting > readAheadMax) return false;
  const sizes = [...ahead.map(({ item }) => item.size), own];
  return sizes.reduce<number>((sum, size) => sum + (size ?? Number.POSITIVE_INFINITY), 0) <= readAheadBytesMax;
}

export function startReading<Item, Work>(item: Item, read: (item: Item) => Promise<Work>) {
  const reading = { item, isRead: false, work: read(item) };
  // A rejection is handled once it is awaited, and must not count as unhandled before.
  reading.work.then(
    () => {
      reading.isRead = true;
    },
    () => {},
  );
  return reading;
}
