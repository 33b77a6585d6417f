import { isStopTerm, readTokens, type StemLanguage, type Token, termIn } from '../terms.ts';
import { type Embedder, normalize } from './embedder.ts';

const dimensions = 1024;
/** The weight of a character n-gram relative to a whole word. */
const gramWeight = 0.25;
const gramLengths = [4, 5] as const;

/**
 * The built-in embedder: without a model or network, the same text always gives the same vector. Stemmed words and
 * their character 4- and 5-grams are hashed with a sign into 1,024 places (feature hashing, Weinberger et al. 2009),
 * each weighted by 1 + ln(frequency). It matches misspelt, compound and inflected words, but not meanings.
 */
export function lexicalEmbedder(language: StemLanguage = 'english'): Embedder {
  return {
    model: `lexical-2-${language}`,
    dimensions,
    local: true,
    fusionWeight: 0.2,
    similarityFloor: 0.1,
    batchTexts: 64,
    builtIn: language,
    embed: async (texts) => texts.map((text) => embedLexically(text, language)),
  };
}

/** The vector of one text, of unit length. */
export function embedLexically(text: string, language: StemLanguage): Float32Array {
  return embedTokens(readTokens(text, language), language);
}

/** The vector of a text whose tokens may have been read in another language. */
export function embedTokens(tokens: readonly Token[], language: StemLanguage): Float32Array {
  const counts = new Map<string, number>();
  for (const token of tokens) {
    const term = termIn(token, language);
    counts.set(term, (counts.get(term) ?? 0) + 1);
  }
  return embedTerms([...counts], language);
}

/** The vector of a text that has these terms of a language, each so many times, in the order in which they appear. */
export function embedTerms(counts: readonly (readonly [string, number])[], language: StemLanguage): Float32Array {
  const counted = counts.filter(([term]) => !isStopTerm(term, language));
  // Grams are identified by their hashes alone, because the vector depends on nothing else.
  const grams = new Tally(counted.reduce((sum, [term]) => sum + gramLengths.length * (term.length + 2), 0));
  const vector = new Float32Array(dimensions);
  for (const [term, count] of counted) {
    addFeature(vector, hash(term, 1), 1 + Math.log(count));
    const framed = `^${term}$`;
    for (const length of gramLengths)
      for (let i = 0; i + length <= framed.length; i++) grams.add(hash(framed, 2, i, i + length), count);
  }
  for (let i = 0; i < grams.size; i++)
    addFeature(vector, grams.numbers[i] as number, gramWeight * (1 + Math.log(grams.counts[i] as number)));
  return normalize(vector);
}

/** Counts 32-bit numbers in the order in which they appear. In a Map, those above 2^30 are objects. */
class Tally {
  readonly numbers: Int32Array;
  readonly counts: Int32Array;
  size = 0;
  /** Where each number is, plus one, at the first free place from its lowest bits on. */
  readonly #places: Int32Array;

  /** @param most the number of numbers at most */
  constructor(most: number) {
    this.numbers = new Int32Array(most);
    this.counts = new Int32Array(most);
    this.#places = new Int32Array(2 ** Math.ceil(Math.log2(most * 2 + 1)));
  }

  add(number: number, count: number): void {
    const mask = this.#places.length - 1;
    let slot = number & mask;
    for (; ; slot = (slot + 1) & mask) {
      const place = (this.#places[slot] as number) - 1;
      if (place < 0) break;
      if (this.numbers[place] !== number) continue;
      this.counts[place] = (this.counts[place] as number) + count;
      return;
    }
    this.numbers[this.size] = number;
    this.counts[this.size] = count;
    this.size += 1;
    this.#places[slot] = this.size;
  }
}

function addFeature(vector: Float32Array, feature: number, weight: number): void {
  const place = feature & (dimensions - 1);
  vector[place] = (vector[place] ?? 0) + (feature & 0x8000_0000 ? -weight : weight);
}

/** FNV-1a over the UTF-16 units from `start` to `end`, with a final mix (murmur3), 32 bits. */
function hash(text: string, seed: number, start = 0, end = text.length): number {
  let value = 0x811c9dc5 ^ seed;
  for (let i = start; i < end; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) | 0;
}
