import { stemLanguages } from '../config-values.ts';
import { lazyPackage } from '../lazy-package.ts';
import { stopWords } from './stop-words.ts';

const snowball = lazyPackage<typeof import('snowball-stemmers')>('snowball-stemmers');

export type StemLanguage = (typeof stemLanguages)[number];

/** A word in the index. */
type Token = {
  /** Folded and stemmed. */
  term: string;
  /** Its index among the words of the text, from 0. */
  position: number;
  /** True for a whole identifier (`max_pages`), in addition to its parts, at the position of the first part. */
  whole: boolean;
  /** Where it stands in the text after NFKC, in UTF-16 units. */
  start: number;
  end: number;
};

export function isStemLanguage(name: string): name is StemLanguage {
  return (stemLanguages as readonly string[]).includes(name);
}

/**
 * The words of a text in order. Case, accents and width are folded and words stemmed. Identifiers (`getUserName`,
 * `max_pages`, `node.js`, `v1.2`) yield their parts and, as a further token, the whole. Scripts without spaces yield
 * pairs of neighbouring characters.
 */
export function readTokens(text: string, language: StemLanguage): Token[] {
  const tokens: Token[] = [];
  let position = 0;
  for (const match of text.normalize('NFKC').matchAll(wordPattern)) {
    const raw = match[0];
    const parts = splitWord(raw);
    let start = match.index;
    if (parts.length > 1 && isIdentifier(raw) && fold(raw) !== '')
      tokens.push({ term: cut(fold(raw)), position, whole: true, start, end: start + raw.length });
    let searched = 0;
    for (const part of parts) {
      searched = raw.indexOf(part, searched);
      start = match.index + searched;
      searched += part.length;
      const unspaced = unspacedPattern.test(part);
      const terms = unspaced ? pairs(fold(part)) : [stem(fold(part), language)];
      // Folding rarely changes the length of a run; then each of its pairs stands for the whole run.
      const placed = unspaced && terms.length === Math.max(1, part.length - 1);
      for (const [i, term] of terms.entries()) {
        // A word of combining marks only folds to nothing.
        if (term === '') continue;
        const from = placed ? start + i : start;
        const end = placed ? Math.min(start + part.length, from + 2) : start + part.length;
        tokens.push({ term: cut(term), position, whole: false, start: from, end });
        position += 1;
      }
    }
  }
  return tokens;
}

export type ParsedQuery = {
  /** Each distinct term to rank by and how often it occurs in the query. */
  terms: Map<string, number>;
  /** Term sequences that a hit must contain. */
  phrases: string[][];
  /** Word prefixes; any word with such a prefix counts as one term. */
  prefixes: string[];
};

const queryTermsMax = 64;
const queryPartsMax = 16;
/** In a longer text, such as a pasted paragraph, quotation marks are only punctuation. */
const wordsBesidePhrasesMax = 12;

/** Parses a query: words, "phrases in quotes" and prefixes*. Stop words count only when there is nothing else. */
export function parseQuery(query: string, language: StemLanguage): ParsedQuery {
  let phrases: string[][] = [];
  const prefixes: string[] = [];
  const quoted = /["“”„«]([^"“”„»]+)["“”»]/g;
  const outside = readTokens(query.replace(quoted, ' '), language).length;
  const plain = query
    .replace(quoted, (_all, words: string) => {
      const phrase = readTokens(words, language).filter((token) => !token.whole);
      if (phrase.length > 1 && phrases.length < queryPartsMax) phrases.push(phrase.map((token) => token.term));
      return ` ${words} `;
    })
    .replace(/([\p{L}\p{N}_]{2,})\*(?![\p{L}\p{N}_])/gu, (_all, word: string) => {
      if (prefixes.length < queryPartsMax) prefixes.push(cut(fold(word.normalize('NFKC'))));
      return ' ';
    });
  if (outside > wordsBesidePhrasesMax) phrases = [];
  const tokens = readTokens(plain, language);
  const meaningful = tokens.filter((token) => !isStopTerm(token.term, language));
  const terms = new Map<string, number>();
  for (const { term } of meaningful.length > 0 || prefixes.length > 0 ? meaningful : tokens) {
    if (terms.size >= queryTermsMax && !terms.has(term)) continue;
    terms.set(term, (terms.get(term) ?? 0) + 1);
  }
  return { terms, phrases, prefixes };
}

/** Whether a term is the stem of a stop word. */
export function isStopTerm(term: string, language: StemLanguage): boolean {
  let terms = stopTerms.get(language);
  if (terms === undefined) {
    terms = new Set((stopWords[language] ?? '').split(' ').flatMap((word) => [word, stem(fold(word), language)]));
    stopTerms.set(language, terms);
  }
  return terms.has(term);
}

const stopTerms = new Map<StemLanguage, Set<string>>();

/** Letters, digits and marks, with the characters that join identifiers; C++ and C# keep their signs. */
const wordPattern = /[\p{L}\p{N}\p{M}_]+(?:[.'’][\p{L}\p{N}\p{M}_]+)*(?:\+\+|#(?![\p{L}\p{N}]))?/gu;
const unspacedPattern =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
const plainPattern = /^(?:\p{Lu}?[\p{Ll}\p{M}\p{Lo}]+|\p{Lu}+|\p{N}+)$/u;
const partPattern =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}ー]+|\p{Lu}+(?!\p{Ll})|\p{Lu}?(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}])[\p{Ll}\p{M}\p{Lo}\p{Lm}\p{Lt}])+|\p{Lu}|\p{N}+/gu;
const termCharactersMax = 64;

function splitWord(word: string): string[] {
  if (plainPattern.test(word) && !unspacedPattern.test(word)) return [word];
  const possessive = word.replace(/['’]s$/i, '');
  const parts = possessive.match(partPattern) ?? [];
  return /[+#]$/.test(word) && parts.length === 1 ? [word] : parts;
}

/** An identifier: written as one word but with an underscore, an inner dot, digits or inner capitals. */
function isIdentifier(word: string): boolean {
  return /[_.\p{N}]/u.test(word) || /\p{Ll}\p{Lu}/u.test(word);
}

function cut(term: string): string {
  return term.length > termCharactersMax ? term.slice(0, termCharactersMax).toWellFormed() : term;
}

/** Lower case without accents. Marks that change a word in scripts other than Latin and Greek are kept. */
function fold(word: string): string {
  const lower = word.toLowerCase();
  if (isAscii(lower)) return lower;
  return lower
    .normalize('NFD')
    .replace(/([\p{Script=Latin}\p{Script=Greek}])\p{M}+/gu, '$1')
    .replace(/[\u064b-\u0652\u0591-\u05c7]/gu, '')
    .normalize('NFC')
    .replace(/[ßæœøłđıþðё]/g, (letter) => foldedLetters[letter] ?? letter);
}

const foldedLetters: Record<string, string> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ı: 'i',
  þ: 'th',
  ð: 'd',
  ё: 'е',
};

function isAscii(word: string): boolean {
  for (let i = 0; i < word.length; i++) if (word.charCodeAt(i) > 127) return false;
  return true;
}

function pairs(run: string): string[] {
  const characters = [...run];
  if (characters.length === 1) return characters;
  return characters.slice(1).map((character, i) => `${characters[i]}${character}`);
}

type StemmerState = { stem(word: string): string; known: Map<string, string> };
const stemmers = new Map<StemLanguage, StemmerState>();
/** Stemming takes microseconds and texts repeat their words. */
const knownStemsMax = 100_000;

function stem(word: string, language: StemLanguage): string {
  if (language === 'none' || word.length < 3) return word;
  let state = stemmers.get(language);
  if (state === undefined) {
    const stemmer = snowball().newStemmer(language);
    state = { stem: (one) => stemmer.stem(one), known: new Map() };
    stemmers.set(language, state);
  }
  const known = state.known.get(word);
  if (known !== undefined) return known;
  const stemmed = /\p{N}|[_+#]/u.test(word) || word.length > termCharactersMax ? word : state.stem(word) || word;
  if (state.known.size >= knownStemsMax) state.known.clear();
  state.known.set(word, stemmed);
  return stemmed;
}
