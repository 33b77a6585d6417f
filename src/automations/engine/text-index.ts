type Entry<T> = { text: string; of: T };
type Found<T> = { start: number; of: T };

/** The minimum number of characters of a text. */
const startLength = 3;
const hashBits = 16;

/**
 * Finds any of many texts within another one, in one pass: the first characters of the texts rule out most positions,
 * so the time does not grow with the number of texts.
 */
export class TextIndex<T> {
  readonly #mayStart = new Uint8Array(1 << hashBits);
  /** Entries by their first characters, the longest first. */
  readonly #byStart = new Map<string, Entry<T>[]>();

  constructor(entries: readonly Entry<T>[] = []) {
    for (const entry of entries) this.add(entry);
  }

  add(entry: Entry<T>): void {
    const start = entry.text.slice(0, startLength);
    this.#mayStart[hashAt(entry.text, 0)] = 1;
    const known = this.#byStart.get(start) ?? [];
    const shorter = known.findIndex(({ text }) => text.length < entry.text.length);
    known.splice(shorter < 0 ? known.length : shorter, 0, entry);
    this.#byStart.set(start, known);
  }

  /** The texts from left to right, without overlaps; of several that start at one position, the longest. */
  *find(within: string): Generator<Found<T>> {
    if (this.#byStart.size === 0) return;
    for (let at = 0; at <= within.length - startLength; ) {
      const entry = this.#mayStart[hashAt(within, at)] === 1 ? this.#entryAt(within, at) : undefined;
      if (entry === undefined) at += 1;
      else {
        yield { start: at, of: entry.of };
        at += entry.text.length;
      }
    }
  }

  /** Every text that occurs, including those that overlap. */
  findAll(within: string): Set<T> {
    const found = new Set<Entry<T>>();
    /** Starts whose texts have all been found: in a long text of them, every position would be such a start. */
    const done = new Set<string>();
    if (this.#byStart.size > 0)
      for (let at = 0; at <= within.length - startLength; at++) {
        if (this.#mayStart[hashAt(within, at)] === 0) continue;
        const start = within.slice(at, at + startLength);
        if (done.has(start)) continue;
        const entries = this.#byStart.get(start) ?? [];
        for (const entry of entries) if (!found.has(entry) && within.startsWith(entry.text, at)) found.add(entry);
        if (entries.every((entry) => found.has(entry))) done.add(start);
      }
    return new Set(Array.from(found, ({ of }) => of));
  }

  #entryAt(within: string, at: number): Entry<T> | undefined {
    return this.#byStart.get(within.slice(at, at + startLength))?.find(({ text }) => within.startsWith(text, at));
  }
}

function hashAt(text: string, at: number): number {
  const mixed = (text.charCodeAt(at) * 31 + text.charCodeAt(at + 1)) * 31 + text.charCodeAt(at + 2);
  return mixed & ((1 << hashBits) - 1);
}
