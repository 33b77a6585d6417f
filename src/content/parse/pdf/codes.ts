import { rightToLeft } from './characters.ts';

/** The codes of a page's characters, 0 where one has none. */
export type Codes = Uint16Array | Uint32Array;

const firstRightToLeft = 0x590;
/** A longer run without a blank is no word: its inner gaps may mean something. */
const wordCharactersMax = 24;
/** V8 copies shorter slices. A longer one would keep the text of the whole page in memory. */
const copiedSliceMax = 13;

// Loops: a callback for every character of every document takes several times as long.

/** Whether each place of a text is one character. */
export function isOnePerPlace(codes: Uint16Array): boolean {
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index] ?? 0;
    if (code === 0 || (code >= 0xd800 && code < 0xe000)) return false;
  }
  return true;
}

export function hasRightToLeft(codes: Codes): boolean {
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index] ?? 0;
    if (code >= firstRightToLeft && code < 0x10000 && rightToLeft.test(String.fromCharCode(code))) return true;
  }
  return false;
}

/** Whether the code is a visible character of ASCII. */
export function isPlain(code: number): boolean {
  return code > 0x20 && code < 0x7f;
}

/** Where the plain characters from here on end. */
export function wordEnd(codes: Codes, start: number): number {
  let end = start + 1;
  while (end - start < wordCharactersMax && isPlain(codes[end] ?? 0)) end += 1;
  return end;
}

/** Reads words of plain characters out of a page. */
export function readerOfWords(codes: Codes): (start: number, end: number) => string {
  const bytes = Buffer.from(new Uint8Array(codes).buffer);
  const page = bytes.toString('latin1');
  return (start, end) => (end - start < copiedSliceMax ? page.slice(start, end) : bytes.toString('latin1', start, end));
}
