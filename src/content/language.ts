import { lazyPackage } from '../lib/lazy-package.ts';
import { isStopTerm, readTokens, type StemLanguage, type Token, termIn } from './terms.ts';

const tinyld = lazyPackage<typeof import('tinyld')>('tinyld');

/** The languages that are detected: those with a stemmer, and others that would be mistaken for one of them. */
const stemmed: Record<string, StemLanguage> = {
  ar: 'arabic',
  ca: 'catalan',
  cs: 'czech',
  da: 'danish',
  de: 'german',
  en: 'english',
  es: 'spanish',
  eu: 'basque',
  fi: 'finnish',
  fr: 'french',
  ga: 'irish',
  hu: 'hungarian',
  it: 'italian',
  nl: 'dutch',
  no: 'norwegian',
  pt: 'portuguese',
  ro: 'romanian',
  ru: 'russian',
  sl: 'slovene',
  sv: 'swedish',
  ta: 'tamil',
  tr: 'turkish',
};
const others = [
  'bg',
  'el',
  'et',
  'fa',
  'he',
  'hi',
  'hr',
  'is',
  'ja',
  'ko',
  'lt',
  'lv',
  'pl',
  'sk',
  'th',
  'uk',
  'vi',
  'zh',
];
const toldApart = [...Object.keys(stemmed), ...others];

const charactersMax = 4_000;
const lettersMin = 20;
/** How sure the detector must be, from 0 to 1. For titles and lists of names, it is less sure. */
const accuracyMin = 0.5;
/** In a text of another language, at most this share of the words looks like stop words of the usual language. */
const stopWordsMax = 0.2;
/**
 * What makes a text English without the detector, which takes as long as all else together. In prose, four words of ten
 * are English stop words; in texts of other languages, at most two of ten are.
 */
const plainEnglish = { foreignMax: 0.02, wordsMin: 50, stopWordsMin: 0.3 };
/**
 * A shorter text in Latin letters must also contain stop words of the language, because titles mislead the detector.
 */
const longTextLetters = 120;

/**
 * Detects the language of a text for stemming: `none` if the language has no stemmer, `otherwise` if it cannot be
 * detected. In a short text, a single accent misleads the detector, so stop words have to agree.
 */
export function detectLanguage(text: string, otherwise: StemLanguage): StemLanguage {
  const sample = takeSample(text);
  const letters = takeLetters(sample);
  if (letters.length < lettersMin) return otherwise;
  if (otherwise === 'english' && isPlainlyEnglish(sample)) return 'english';
  const [best] = tinyld().detectAll(sample, { only: toldApart });
  if (best === undefined || best.accuracy < accuracyMin) return otherwise;
  const found = stemmed[best.lang] ?? 'none';
  if (found === otherwise) return found;
  const tokens = readTokens(sample, otherwise);
  const usual = shareOfStopWords(tokens, otherwise);
  const share = shareOfStopWords(tokens, found);
  const isShort = letters.length < longTextLetters && letters.every((letter) => /\p{Script=Latin}/u.test(letter));
  return (isShort ? share > usual : usual < stopWordsMax || share >= usual) ? found : otherwise;
}

/** Whether nearly all of a text is ASCII, and as many of its words are stop words as in English alone. */
function isPlainlyEnglish(sample: string): boolean {
  let foreign = 0;
  for (let i = 0; i < sample.length; i++) if (sample.charCodeAt(i) > 127) foreign += 1;
  const words = sample.toLowerCase().match(/[a-z]+/g) ?? [];
  if (foreign > sample.length * plainEnglish.foreignMax || words.length < plainEnglish.wordsMin) return false;
  const stopWords = words.filter((word) => isStopTerm(word, 'english')).length;
  return stopWords >= words.length * plainEnglish.stopWordsMin;
}

/** The first letters of a text, as many as tell whether it is long. */
function takeLetters(text: string): string[] {
  const letters: string[] = [];
  for (const [letter] of text.matchAll(/\p{L}/gu)) if (letters.push(letter) >= longTextLetters) break;
  return letters;
}

/** 0 for a language without a list of stop words. */
function shareOfStopWords(tokens: readonly Token[], language: StemLanguage): number {
  return tokens.filter((token) => isStopTerm(termIn(token, language), language)).length / Math.max(1, tokens.length);
}

/** The text or, if it is long, parts from its beginning, middle and end. */
function takeSample(text: string): string {
  if (text.length <= charactersMax) return text;
  const part = Math.floor(charactersMax / 3);
  const middle = Math.floor((text.length - part) / 2);
  return [text.slice(0, part), text.slice(middle, middle + part), text.slice(-part)].join('\n').toWellFormed();
}
