import { stemLanguages } from '../config/values.ts';
import { lazyPackage } from '../lib/lazy-package.ts';
import { stopWords } from './stop-words.ts';

const snowball = lazyPackage<typeof import('snowball-stemmers')>('snowball-stemmers');

export type StemLanguage = (typeof stemLanguages)[number];

/** A word in the index. */
export type Token = {
  /** Folded and stemmed. */
  term: string;
  /** Folded only; undefined for what is never stemmed. */
  word: string | undefined;
  /** The word's index among the words of the text, from 0. */
  position: number;
  /**
   * True for a whole identifier (`max_pages`), which is in the index in addition to its parts, and for a word in
   * addition to its pairs of characters. Its position is that of the first of them.
   */
  whole: boolean;
  /** Where the word is in the NFKC form of the text, in UTF-16 units. */
  start: number;
  end: number;
};

export function isStemLanguage(name: string): name is StemLanguage {
  return (stemLanguages as readonly string[]).includes(name);
}

/**
 * Yields the words of a text in order. Case, accents and width are folded, and words are stemmed. Identifiers
 * (`getUserName`, `max_pages`, `node.js`, `v1.2`) yield their parts and, as a further token, the whole. Chinese,
 * Japanese, Korean, Thai, Lao and Khmer yield pairs of neighbouring characters and, as further tokens, the words that
 * the Unicode segmenter finds.
 */
export function readTokens(text: string, language: StemLanguage): Token[] {
  const tokens: Token[] = [];
  const normal = text.normalize('NFKC');
  const plainWords = plainWordsOf(language);
  let position = 0;
  let wordEnd = 0;
  // Without the objects that `matchAll` makes. Between two words, there are no characters of words.
  for (const raw of normal.match(wordPattern) ?? []) {
    const wordStart = normal.indexOf(raw, wordEnd);
    wordEnd = wordStart + raw.length;
    const plain = plainWords.get(raw);
    if (plain !== undefined) {
      const { term, word } = plain;
      tokens.push({ term, position, whole: false, start: wordStart, end: wordEnd, word });
      position += 1;
      continue;
    }
    const parts = splitWord(raw);
    let start = wordStart;
    if (parts.length > 1 && isIdentifier(raw) && fold(raw) !== '')
      tokens.push({ term: cut(fold(raw)), word: undefined, position, whole: true, start, end: start + raw.length });
    let searched = 0;
    for (const part of parts) {
      searched = raw.indexOf(part, searched);
      start = wordStart + searched;
      searched += part.length;
      const unspaced = unspacedPattern.test(part);
      const word = unspaced ? undefined : fold(part);
      const terms = word === undefined ? pairs(fold(part)) : [stem(word, language)];
      // Folding rarely changes the length of a run. If it does, each pair has the range of the whole run.
      const placed = unspaced && terms.length === Math.max(1, part.length - 1);
      const words = unspaced ? segment(part) : [];
      for (const [i, term] of terms.entries()) {
        for (const { text: inner, index } of words) {
          if ((placed ? index : 0) !== i) continue;
          const from = start + index;
          const term = cut(fold(inner));
          tokens.push({ term, word: undefined, position, whole: true, start: from, end: from + inner.length });
        }
        // A word that consists only of combining marks folds to nothing.
        if (term === '') continue;
        const from = placed ? start + i : start;
        const end = placed ? Math.min(start + part.length, from + 2) : start + part.length;
        tokens.push({ term: cut(term), position, whole: false, start: from, end, word });
        position += 1;
        if (word !== undefined && part === raw) keepPlain(plainWords, raw, { term: cut(term), word });
      }
    }
  }
  return tokens;
}

/** The term of a token in another language than the one in which its text was read. */
export function termIn({ term, word }: Token, language: StemLanguage): string {
  return word === undefined ? term : cut(stem(word, language));
}

/** A word of a query: one term in each language. */
type QueryTerm = {
  /** The term in the query's own language. */
  label: string;
  /** How often the query contains it. */
  count: number;
  byLanguage: ReadonlyMap<StemLanguage, string>;
};

type ParsedQuery = {
  /** The distinct words to rank by. */
  terms: QueryTerm[];
  /** Words that a hit must contain consecutively. */
  phrases: QueryTerm[][];
  /** Word prefixes; any word with such a prefix counts as one term. */
  prefixes: string[];
};

const queryTermsMax = 64;
const queryPartsMax = 16;
/** In a longer text, such as a pasted paragraph, quotation marks are only punctuation. */
const wordsBesidePhrasesMax = 12;

/**
 * Parses a query for texts in these languages: words, "phrases in quotes" and prefixes*. Stop words count only if
 * there is nothing else.
 */
export function parseQuery(query: string, languages: readonly StemLanguage[]): ParsedQuery {
  let phrases: QueryTerm[][] = [];
  const prefixes: string[] = [];
  const quoted = /["“”„«]([^"“”„»]+)["“”»]/g;
  const outside = readTokens(query.replace(quoted, ' '), 'none').length;
  const own = queryLanguage(query, languages);
  const plain = query
    .replace(quoted, (_all, words: string) => {
      const phrase = readWords(words, languages, own).filter((word) => !word.whole);
      if (phrase.length > 1 && phrases.length < queryPartsMax) phrases.push(phrase);
      return ` ${words} `;
    })
    .replace(/([\p{L}\p{N}_]{2,})\*(?![\p{L}\p{N}_])/gu, (_all, word: string) => {
      if (prefixes.length < queryPartsMax) prefixes.push(cut(fold(word.normalize('NFKC'))));
      return ' ';
    });
  if (outside > wordsBesidePhrasesMax) phrases = [];
  const words = readWords(plain, languages, own);
  const meaningful = words.filter((word) => !isStopTerm(word.label, own));
  const terms = new Map<string, QueryTerm>();
  let before: string | undefined;
  for (const { label, byLanguage, whole } of meaningful.length > 0 || prefixes.length > 0 ? meaningful : words) {
    const key = [...byLanguage.values()].join(' ');
    const known = terms.get(key);
    // A word of two characters is its own pair.
    if (known && key !== before) known.count += 1;
    else if (!known && terms.size < queryTermsMax) terms.set(key, { label, count: 1, byLanguage });
    before = whole ? key : undefined;
  }
  return { terms: [...terms.values()], phrases, prefixes };
}

/**
 * The words of a query in each language. Languages differ only in their stems, so the same words are at the same
 * positions.
 */
function readWords(text: string, languages: readonly StemLanguage[], own: StemLanguage) {
  const byLanguage = languages.map((language) => ({ language, tokens: readTokens(text, language) }));
  return readTokens(text, own).map(({ term, whole }, i) => ({
    label: term,
    count: 1,
    whole,
    byLanguage: new Map(byLanguage.map(({ language, tokens }) => [language, tokens[i]?.term ?? term])),
  }));
}

/** The language that a query is written in: the one with most of its stop words, or the first if none has any. */
function queryLanguage(query: string, languages: readonly StemLanguage[]): StemLanguage {
  const [first = 'none'] = languages;
  if (languages.length < 2) return first;
  let best = { language: first, stopWords: 0 };
  for (const language of languages) {
    const stopWords = readTokens(query, language).filter(({ term }) => isStopTerm(term, language)).length;
    if (stopWords > best.stopWords) best = { language, stopWords };
  }
  return best.language;
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

/** Letters, digits and marks, with the characters that join identifiers. C++ and C# keep their signs. */
const wordPattern = /[\p{L}\p{N}\p{M}_]+(?:[.'’][\p{L}\p{N}\p{M}_]+)*(?:\+\+|#(?![\p{L}\p{N}]))?/gu;
/** Scripts that write words without spaces, and Korean, which attaches particles to words. */
const unspacedPattern =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
const plainPattern = /^(?:\p{Lu}?[\p{Ll}\p{M}\p{Lo}]+|\p{Lu}+|\p{N}+)$/u;
const partPattern =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}ー]+|\p{Lu}+(?!\p{Ll})|\p{Lu}?(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}])[\p{Ll}\p{M}\p{Lo}\p{Lm}\p{Lt}])+|\p{Lu}|\p{N}+/gu;
const termCharactersMax = 64;

function splitWord(word: string): string[] {
  if (plainPattern.test(word) && !unspacedPattern.test(word)) return [word];
  const possessive = word.replace(/['’]s$/i, '');
  const parts = possessive.match(partPattern) ?? [];
  return /[+#]$/.test(word) && parts.length === 1 ? [word] : parts;
}

/** An identifier: one word with an underscore, an inner dot, digits or inner capitals. */
function isIdentifier(word: string): boolean {
  return /[_.\p{N}]/u.test(word) || /\p{Ll}\p{Lu}/u.test(word);
}

function cut(term: string): string {
  return term.length > termCharactersMax ? term.slice(0, termCharactersMax).toWellFormed() : term;
}

/** Folds to lower case without accents. Marks that change a word in scripts other than Latin and Greek are kept. */
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

let segmenter: Intl.Segmenter | undefined;

/**
 * The words of two or more characters in a run without spaces. Most pairs already contain the words of one character.
 */
function segment(run: string): { text: string; index: number }[] {
  // Created when a text needs it, because its dictionaries take memory.
  segmenter ??= new Intl.Segmenter('und', { granularity: 'word' });
  return [...segmenter.segment(run)].flatMap(({ segment: text, index }) =>
    text.length < 2 || fold(text) === '' ? [] : [{ text, index }],
  );
}

function pairs(run: string): string[] {
  const characters = [...run];
  if (characters.length === 1) return characters;
  return characters.slice(1).map((character, i) => `${characters[i]}${character}`);
}

/** How a word is read that is one part without further tokens. */
type PlainWord = { term: string; word: string };
type PlainWords = Map<string, PlainWord>;
const plainWordsByLanguage = new Map<StemLanguage, PlainWords>();
/** Most words of a text are in few forms, and splitting, folding and stemming one takes a microsecond. */
const plainWordsMax = 50_000;
/** The parts of a string that are longer keep all of it in memory. */
const plainCharactersMax = 12;

function plainWordsOf(language: StemLanguage): PlainWords {
  const known = plainWordsByLanguage.get(language);
  if (known !== undefined) return known;
  const words: PlainWords = new Map();
  plainWordsByLanguage.set(language, words);
  return words;
}

function keepPlain(words: PlainWords, raw: string, plain: PlainWord): void {
  if (raw.length > plainCharactersMax) return;
  if (words.size >= plainWordsMax) words.clear();
  words.set(raw, plain);
}

type StemmerState = { stem(word: string): string; known: Map<string, string> };
const stemmers = new Map<StemLanguage, StemmerState>();
/** Stemming takes microseconds, and texts repeat their words. */
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
