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
    if (!isStopTerm(term, language)) counts.set(term, (counts.get(term) ?? 0) + 1);
  }
  // Grams are identified by their hashes alone, because the vector depends on nothing else.
  const grams = new Map<number, number>();
  const vector = new Float32Array(dimensions);
  for (const [term, count] of counts) {
    addFeature(vector, hash(term, 1), 1 + Math.log(count));
    const framed = `^${term}$`;
    for (const length of gramLengths)
      for (let i = 0; i + length <= framed.length; i++) {
        const gram = hash(framed, 2, i, i + length);
        grams.set(gram, (grams.get(gram) ?? 0) + count);
      }
  }
  for (const [gram, count] of grams) addFeature(vector, gram, gramWeight * (1 + Math.log(count)));
  return normalize(vector);
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
  return value ^ (value >>> 16);
}
