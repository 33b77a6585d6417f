import { rightToLeft } from './characters.ts';
import { isInCluster } from './clusters.ts';

/** The Unicode code points of a page's characters; 0 for a character without one. */
export type Codes = Uint16Array | Uint32Array;

const firstRightToLeft = 0x590;
/** A longer run without a blank is probably not one word, so its inner gaps are examined. */
const wordCharactersMax = 24;
/** V8 copies shorter slices. A longer slice refers to the text of the whole page and would keep it in memory. */
const copiedSliceMax = 13;

// These functions use loops: a callback for each character takes several times as long.

/** Whether each code unit is a whole character: no code is 0 or half of a surrogate pair. */
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

export function hasClusters(codes: Codes): boolean {
  for (let index = 0; index < codes.length; index++) if (isInCluster(codes[index] ?? 0)) return true;
  return false;
}

/** Whether the code is a visible character of ASCII. */
export function isPlain(code: number): boolean {
  return code > 0x20 && code < 0x7f;
}

/** The end (exclusive) of the run of plain characters that begins at `start`. */
export function wordEnd(codes: Codes, start: number): number {
  let end = start + 1;
  while (end - start < wordCharactersMax && isPlain(codes[end] ?? 0)) end += 1;
  return end;
}

/** Returns a function that reads a range of plain characters as text. */
export function createWordReader(codes: Codes): (start: number, end: number) => string {
  const bytes = Buffer.from(new Uint8Array(codes).buffer);
  const page = bytes.toString('latin1');
  return (start, end) => (end - start < copiedSliceMax ? page.slice(start, end) : bytes.toString('latin1', start, end));
}
