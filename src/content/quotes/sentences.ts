import { kinds, kindTable } from './characters.ts';

/** UTF-16 units of a text. */
type Span = { start: number; end: number };

export type Sentence = Span & { text: string; quotes: (Span & { text: string })[]; citations: number[] };

const closing = new Map([
  ['"', '"'],
  ['\u201c', '\u201d'],
  ['\u201e', '\u201c\u201d'],
  ['\u00ab', '\u00bb'],
  ['\u00bb', '\u00ab'],
  ['\u2018', '\u2019'],
  ['\u201a', '\u2018\u2019'],
  ['\u300c', '\u300d'],
  ['\u300e', '\u300f'],
]);
const terminators = '.!?\u2026\u3002\uff01\uff1f';
const closers = '"\u201d\u2019\u00bb\u300d\u300f)]*_`';
/** A sentence that is longer is cut, so that a stream of text without an end is still checked. */
const sentenceUnitsMax = 4_000;

/**
 * Splits a text into sentences as it arrives, each with what it quotes and cites. A quotation is never divided. One
 * that is not closed ends with its paragraph.
 */
export class SentenceReader {
  #text = '';
  #offset = 0;

  /** The sentences that the text so far completes. */
  push(text: string): Sentence[] {
    this.#text += text;
    return this.#read(false);
  }

  /** The sentences that remain. */
  end(): Sentence[] {
    return this.#read(true);
  }

  #read(isEnd: boolean): Sentence[] {
    const sentences: Sentence[] = [];
    for (;;) {
      const end = findEnd(this.#text, isEnd);
      if (end === undefined) return sentences;
      const text = this.#text.slice(0, end);
      if (text.trim() !== '') sentences.push(readSentence(text, this.#offset));
      this.#offset += end;
      this.#text = this.#text.slice(end);
      if (this.#text === '') return sentences;
    }
  }
}

/** All sentences of a text. */
export function splitSentences(text: string): Sentence[] {
  const reader = new SentenceReader();
  return [...reader.push(text), ...reader.end()];
}

/** The end of the first sentence with the white space after it; undefined while it is not known. */
function findEnd(text: string, isEnd: boolean): number | undefined {
  if (/^\s*>/.test(text)) return findBlockEnd(text, isEnd);
  let close: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    if (at >= sentenceUnitsMax) return cutAt(text, at);
    let isEnded = terminators.includes(character);
    if (close !== undefined && isClosing(text, at, close)) {
      close = undefined;
      // A sentence often ends inside of its quotation marks.
      isEnded = terminators.includes(text[at - 1] ?? ' ');
    } else if (close === undefined && isOpening(text, at)) close = closing.get(character);
    if (character === '\n') {
      const paragraph = /\n[ \t]*\n\s*/y;
      paragraph.lastIndex = at;
      const isBreak =
        paragraph.test(text) || (close === undefined && /\n[ \t]*(?:[-*+>#|]|\d+[.)] )/y.test(text.slice(at, at + 12)));
      const end = Math.max(at + 1, paragraph.lastIndex);
      if (isBreak && (end < text.length || isEnd)) return end;
      continue;
    }
    if (close !== undefined || !isEnded) continue;
    const end = afterTerminator(text, at + 1, isEnd);
    if (end === undefined) return undefined;
    if (end > 0) return end;
  }
  return isEnd && text !== '' ? text.length : undefined;
}

/** The end of a block of quoted lines. */
function findBlockEnd(text: string, isEnd: boolean): number | undefined {
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) {
    if (at >= sentenceUnitsMax) return at + 1;
    const next = /[ \t]*(\S|\n)/y;
    next.lastIndex = at + 1;
    const [, first] = next.exec(text) ?? [];
    if (first !== undefined && first !== '>') return at + 1;
  }
  return isEnd && text !== '' ? text.length : undefined;
}

/**
 * Where the sentence ends whose terminator is before `from`: after quotation marks, citations and white space. 0 if
 * it does not end here, undefined if that is not known yet.
 */
function afterTerminator(text: string, from: number, isEnd: boolean): number | undefined {
  let at = from;
  while (at < text.length && (terminators.includes(text[at] ?? '') || closers.includes(text[at] ?? ''))) at += 1;
  const citations = /(?:[ \t]*\[\d{1,4}(?:[ \t]*,[ \t]*\d{1,4})*\])*[.]?[ \t]*\n?/y;
  citations.lastIndex = at;
  citations.test(text);
  const end = Math.max(at, citations.lastIndex);
  const next = text[end];
  if (next === undefined) return isEnd ? text.length : undefined;
  if (next === '[' && !isEnd && text.length - end < 12) return undefined;
  const isIdeographic = '\u3002\uff01\uff1f'.includes(text[from - 1] ?? '.');
  if (end === at && !isIdeographic && !/\s/.test(text[end - 1] ?? '')) return 0;
  if (/^\s*\d{1,3}\.$/.test(text.slice(0, from))) return 0;
  return /\p{Ll}/u.test(next) ? 0 : end;
}

function cutAt(text: string, at: number): number {
  const space = text.lastIndexOf(' ', at);
  if (space > at / 2) return space + 1;
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at - 1 : at;
}

function isWord(text: string, at: number): boolean {
  const kind = at < 0 || at >= text.length ? kinds.space : kindTable()[text.charCodeAt(at)];
  return kind === kinds.letter || kind === kinds.digit;
}

/** Whether a quotation begins here: neither an apostrophe nor the sign of inches. */
function isOpening(text: string, at: number): boolean {
  const character = text[at] ?? '';
  if (!closing.has(character)) return false;
  if (character === '"' || character === '\u2018' || character === '\u00bb') return !isWord(text, at - 1);
  return true;
}

function isClosing(text: string, at: number, close: string): boolean {
  const character = text[at] ?? '';
  if (!close.includes(character)) return false;
  return character !== '\u2019' || !isWord(text, at + 1);
}

function readSentence(text: string, offset: number): Sentence {
  const [start, end] = [offset + text.length - text.trimStart().length, offset + text.trimEnd().length];
  const citations = [...text.matchAll(/\[(\d{1,4}(?:[ \t]*,[ \t]*\d{1,4})*)\]/g)].flatMap(([, list = '']) =>
    list.split(',').map(Number),
  );
  return { text: text.trim(), start, end, quotes: readQuotes(text, offset), citations: [...new Set(citations)] };
}

function readQuotes(text: string, offset: number): Sentence['quotes'] {
  if (/^\s*>/.test(text)) {
    const quoted = text
      .replaceAll(/^[ \t]*>[ \t]?/gm, '')
      .replaceAll(/\[\d{1,4}(?:[ \t]*,[ \t]*\d{1,4})*\]/g, '')
      .trim();
    const start = offset + text.indexOf('>') + 1;
    return quoted === '' ? [] : [{ text: quoted, start, end: offset + text.trimEnd().length }];
  }
  const quotes: Sentence['quotes'] = [];
  for (let at = 0; at < text.length; at++) {
    if (!isOpening(text, at)) continue;
    const close = closing.get(text[at] ?? '') ?? '';
    let end = at + 1;
    while (end < text.length && !isClosing(text, end, close)) end += 1;
    const quoted = text.slice(at + 1, end);
    if (quoted.trim() !== '') quotes.push({ text: quoted, start: offset + at + 1, end: offset + end });
    at = end;
  }
  return quotes;
}
