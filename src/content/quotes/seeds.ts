import type { Pace } from '../../lib/pace.ts';
import { type Word, wordsOf } from './difference.ts';
import type { NormalForm } from './normal-form.ts';

/** A passage that shares pairs of words with a quote. Its words are placed in their window, which begins at `offset`. */
type Seed<Key> = { key: Key; votes: number; words: Word[]; offset: number };

type Place = { quote: number; at: number };

/** Passages by quote and place. */
type Votes = Map<number, { quote: number; begin: number; count: number }>;

/** More than there are places in a window. Those before it have negative numbers. */
const slotsMax = 1_000_000;
/** Words that are looked up without letting other work run. */
const wordsPerTurn = 256;
/** A pair of words counts for at most this number of quotes. */
const placesMax = 8;

/** Finds for each quote the passage that shares most pairs of neighbouring words, at about the same distances. */
export class Seeds<Key> {
  readonly #pairs = new Map<string, Place[]>();
  readonly #lengths = new Map<number, number>();
  readonly #best = new Map<number, Seed<Key>>();

  best(quote: number): Seed<Key> | undefined {
    return this.#best.get(quote);
  }

  async scan(
    { key, form, offset }: { key: Key; form: NormalForm; offset: number },
    quotes: ReadonlySet<number>,
    formOf: (quote: number) => NormalForm | undefined,
    pace: Pace,
  ): Promise<void> {
    for (const quote of quotes) {
      await pace.keep();
      this.#index(quote, formOf(quote));
    }
    const words = [...wordsOf(form)];
    const votes: Votes = new Map();
    for (let at = 0; at + 1 < words.length; at++) {
      if (at % wordsPerTurn === 0) await pace.keep();
      for (const place of this.#pairs.get(pairOf(words, at)) ?? [])
        if (quotes.has(place.quote)) this.#vote(votes, place, at);
    }
    for (const { quote, begin, count } of votes.values()) {
      if (count <= (this.#best.get(quote)?.votes ?? 0)) continue;
      await pace.keep();
      const length = this.#lengths.get(quote) ?? 0;
      const around = words.slice(Math.max(0, begin - length), begin + 2 * length);
      this.#best.set(quote, { key, votes: count, words: around, offset });
    }
  }

  /** Counts a pair for the passage where the quote would begin. Passages overlap, so that none is cut in two. */
  #vote(votes: Votes, { quote, at }: Place, found: number): void {
    const width = Math.max(4, Math.ceil((this.#lengths.get(quote) ?? 0) / 2));
    const slot = Math.floor((found - at) / width);
    for (const each of [slot, slot - 1]) {
      const name = quote * slotsMax + each;
      const known = votes.get(name);
      if (known === undefined) votes.set(name, { quote, begin: Math.max(0, each * width), count: 1 });
      else known.count += 1;
    }
  }

  #index(quote: number, form: NormalForm | undefined): void {
    if (this.#lengths.has(quote) || form === undefined) return;
    const words = [...wordsOf(form)];
    this.#lengths.set(quote, words.length);
    const own = new Set<string>();
    for (let at = 0; at + 1 < words.length; at++) {
      const pair = pairOf(words, at);
      const places = this.#pairs.get(pair) ?? [];
      if (own.has(pair) || places.length >= placesMax) continue;
      own.add(pair);
      this.#pairs.set(pair, [...places, { quote, at }]);
    }
  }
}

function pairOf(words: readonly Word[], at: number): string {
  return `${words[at]?.core} ${words[at + 1]?.core}`;
}
