import { openPdf, type PdfDocument } from './document.ts';
import type { Glyph } from './glyph.ts';

/** A text to find on the pages of a PDF, numbered from 1. `before` is what precedes it in the document. */
export type WantedText = { text: string; before: string; startPage: number; endPage: number };

/** A part of a line, in points from the upper left corner of a page of this size. */
export type TextBox = {
  page: number;
  left: number;
  top: number;
  right: number;
  bottom: number;
  pageWidth: number;
  pageHeight: number;
};

const pagesOfTextMax = 4;
/** A shorter part of a text may stand anywhere on a page, so it is not looked for. */
const partUnitsMin = 8;
const partsMax = 40;
const boxesMax = 200;

/** Returns where each text stands; an empty list if it is not found as a whole. */
export async function locateTexts(bytes: Uint8Array, wanted: readonly WantedText[]): Promise<TextBox[][]> {
  const document = await openPdf(bytes);
  try {
    const pages = new Map<number, PageText>();
    return wanted.map((one) => locate(document, pages, one));
  } finally {
    document.close();
  }
}

function locate(document: PdfDocument, pages: Map<number, PageText>, wanted: WantedText): TextBox[] {
  const { startPage, endPage } = wanted;
  const last = Math.min(endPage, document.pageCount, startPage + pagesOfTextMax - 1);
  const text = letters(wanted.text);
  if (text === '' || startPage < 1) return [];
  const before = letters(wanted.before);
  const boxes: TextBox[] = [];
  let at = 0;
  let parts = 0;
  for (let number = startPage; number <= last; number++) {
    let page = pages.get(number);
    if (page === undefined) {
      page = readPage(document, number);
      pages.set(number, page);
    }
    // Heads and feet of pages, and columns in another order, divide a text into parts.
    while (at < text.length && parts < partsMax) {
      const least = at === 0 ? Math.min(text.length, partUnitsMin) : partUnitsMin;
      const found = findLongest(page.text, text.slice(at), least, at === 0 ? before : '');
      if (found === undefined) break;
      boxes.push(...boxesOf(page, found.start, found.start + found.length));
      at += found.length;
      parts += 1;
    }
  }
  return at === text.length && boxes.length <= boxesMax ? boxes : [];
}

type PageText = {
  number: number;
  width: number;
  height: number;
  /** The letters and digits of the page in drawing order, and the glyph of each. */
  text: string;
  glyphs: Glyph[];
};

function readPage(document: PdfDocument, number: number): PageText {
  return document.withPage(number - 1, (page) => {
    const { width, height } = page;
    let text = '';
    const glyphs: Glyph[] = [];
    for (const glyph of page.glyphs()) {
      if (glyph.generated) continue;
      const own = letters(glyph.character);
      for (let i = 0; i < own.length; i++) glyphs.push(glyph);
      text += own;
    }
    return { number, width, height, text, glyphs };
  });
}

/** What remains of a text however it is laid out: letters and digits. Ligatures are divided, marks of pages left out. */
function letters(text: string): string {
  const plain = text.replaceAll(/<!-- page \d{1,9} -->/g, '');
  return plain.normalize('NFKC').replaceAll(/[^\p{L}\p{M}\p{N}]/gu, '');
}

/** The longest beginning of a text on the page. Of equally long ones, that which follows the same words as the text. */
function findLongest(
  page: string,
  text: string,
  least: number,
  before: string,
): { start: number; length: number } | undefined {
  if (text.length < least) return undefined;
  const seed = text.slice(0, least);
  let best: { start: number; length: number; context: number } | undefined;
  for (let start = page.indexOf(seed); start >= 0; start = page.indexOf(seed, start + 1)) {
    let length = least;
    while (length < text.length && page[start + length] === text[length]) length += 1;
    let context = 0;
    while (context < before.length && page[start - 1 - context] === before[before.length - 1 - context]) context += 1;
    if (best === undefined || length > best.length || (length === best.length && context > best.context))
      best = { start, length, context };
  }
  return best;
}

/** One box for each line. */
function boxesOf({ number, width, height, glyphs }: PageText, start: number, end: number): TextBox[] {
  const boxes: TextBox[] = [];
  let box: TextBox | undefined;
  for (const { left, right, top, bottom } of glyphs.slice(start, end)) {
    const overlap = box === undefined ? 0 : Math.min(box.bottom, bottom) - Math.max(box.top, top);
    const isSameLine = box !== undefined && overlap > (bottom - top) / 2 && left >= box.left - (bottom - top);
    if (box === undefined || !isSameLine) {
      box = { page: number, left, top, right, bottom, pageWidth: width, pageHeight: height };
      boxes.push(box);
    } else {
      box.right = Math.max(box.right, right);
      box.left = Math.min(box.left, left);
      box.top = Math.min(box.top, top);
      box.bottom = Math.max(box.bottom, bottom);
    }
  }
  return boxes;
}
