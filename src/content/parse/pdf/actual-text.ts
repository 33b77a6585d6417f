import { characterOf } from './characters.ts';
import type { Glyph } from './glyph.ts';
import { eachObject, textObject } from './objects.ts';
import { callPdfium, type Pdfium } from './pdfium.ts';

/** The text that stands for what a marked part of a page draws (`ActualText`, ISO 32000-1, 14.9.4). */
export type Replacement = { text: string };

const textBytesMax = 4_096;
const marksMax = 8;
/** A larger step between baselines is another line. */
const lineStepEms = 0.6;

/**
 * Takes the replacement texts from the marks of a page and returns them by text object. Must run before the engine loads
 * the page's text: it would place the letters of a replacement in the box of the first object only, and insert blanks
 * into the gap that this leaves. The outermost replacement of an object counts.
 */
export function takeReplacements(pdfium: Pdfium, page: number): Map<number, Replacement> {
  const replacements = new Map<number, Replacement>();
  const marks = new Map<number, Replacement | undefined>();
  const owners = new Map<number, number>();
  const key = callPdfium(pdfium, 'malloc', [textBytesMax + 32]);
  try {
    pdfium.HEAPU8.set(new TextEncoder().encode('ActualText\0'), key);
    eachObject(pdfium, page, (object, kind) => {
      if (kind !== textObject) return;
      const count = Math.min(marksMax, pdfium.frequent.FPDFPageObj_CountMarks(object));
      for (let index = 0; index < count; index++) {
        const mark = pdfium.frequent.FPDFPageObj_GetMark(object, index);
        if (!marks.has(mark)) {
          marks.set(mark, readReplacement(pdfium, mark, key));
          owners.set(mark, object);
        }
        const replacement = marks.get(mark);
        if (replacement && !replacements.has(object)) replacements.set(object, replacement);
      }
    });
    for (const [mark, object] of owners)
      if (marks.get(mark)) callPdfium(pdfium, 'FPDFPageObjMark_RemoveParam', [object, mark, key]);
  } finally {
    callPdfium(pdfium, 'free', [key]);
  }
  return replacements;
}

/** An empty replacement is ignored, as other readers do: files have it on text that they show. */
function readReplacement(pdfium: Pdfium, mark: number, key: number): Replacement | undefined {
  const [length, buffer] = [key + 16, key + 32];
  const found = pdfium.frequent.FPDFPageObjMark_GetParamBlobValue(mark, key, buffer, textBytesMax, length);
  if (found === 0) return undefined;
  const size = new DataView(pdfium.HEAPU8.buffer, length, 4).getUint32(0, true);
  if (size > textBytesMax) return undefined;
  const text = decodeText(pdfium.HEAPU8.slice(buffer, buffer + size));
  return text.trim() === '' ? undefined : { text };
}

/** A text string of the format: UTF-16 or UTF-8 with a byte order mark, otherwise nearly Latin-1. */
function decodeText(bytes: Uint8Array): string {
  const label =
    bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : bytes[0] === 0xef && bytes[1] === 0xbb ? 'utf-8' : 'latin1';
  return Array.from(new TextDecoder(label).decode(bytes), (one) => characterOf(one.codePointAt(0) ?? 0, false))
    .join('')
    .replaceAll(/\s+/g, ' ');
}

/**
 * The glyphs of a page, with one glyph in place of all that a replacement stands for. It covers what they cover on their
 * first line. `replacements` has that of each glyph.
 */
export function replaceGlyphs(glyphs: Glyph[], replacements: (Replacement | undefined)[]): Glyph[] {
  const replaced = new Map<Replacement, Glyph>();
  const out: Glyph[] = [];
  let last: Replacement | undefined;
  let inserted: Glyph[] = [];
  glyphs.forEach((glyph, at) => {
    if (glyph.generated) {
      inserted.push(glyph);
      return;
    }
    const replacement = replacements[at];
    // What the engine inserted between the parts of a replacement belongs to neither.
    if (!replacement || replacement !== last) out.push(...inserted);
    inserted = [];
    last = replacement;
    const whole = replacement && replaced.get(replacement);
    if (whole) cover(whole, glyph);
    else if (replacement) {
      const hyphen = /^[-\u00ad\u2010]$/.test(replacement.text);
      const first = { ...glyph, character: replacement.text.replace('\u00ad', '-'), hyphen };
      replaced.set(replacement, first);
      out.push(first);
    } else out.push(glyph);
  });
  return [...out, ...inserted];
}

function cover(whole: Glyph, part: Glyph): void {
  if (Math.abs(part.baseline - whole.baseline) > whole.style.size * lineStepEms || part.turn !== whole.turn) return;
  whole.left = Math.min(whole.left, part.left);
  whole.right = Math.max(whole.right, part.right);
  whole.top = Math.min(whole.top, part.top);
  whole.bottom = Math.max(whole.bottom, part.bottom);
  whole.inkLeft = Math.min(whole.inkLeft ?? whole.left, part.inkLeft ?? part.left);
  whole.inkRight = Math.max(whole.inkRight ?? whole.right, part.inkRight ?? part.right);
}
