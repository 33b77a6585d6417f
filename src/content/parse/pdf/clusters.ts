import type { Glyph } from './glyph.ts';

/** Scripts of South and Southeast Asia, whose letters and marks form clusters: Devanagari to Sinhala, Thai to Myanmar, Khmer. */
const firstCluster = 0x900;
const lastCluster = 0x109f;
const firstKhmer = 0x1780;
const lastKhmer = 0x17ff;

/** A narrower gap has no blank, and a wider one has. The engine misplaces blanks where it misjudges the width of a cluster. */
const touchingEms = 0.05;
const blankEms = 0.13;

/** Whether the code belongs to a script whose marks are drawn before, above, below and after their letter. */
export function isInCluster(code: number): boolean {
  return (code >= firstCluster && code <= lastCluster) || (code >= firstKhmer && code <= lastKhmer);
}

/**
 * Places the blanks of a page whose clusters the engine measures wrongly: those that it inserted between touching glyphs
 * and before marks are removed, missing ones are added.
 */
export function placeBlanks(glyphs: Glyph[]): Glyph[] {
  const out: Glyph[] = [];
  let before: Glyph | undefined;
  let inserted: Glyph[] = [];
  for (const glyph of glyphs) {
    if (glyph.generated) {
      inserted.push(glyph);
      continue;
    }
    const gap = before && gapBetween(before, glyph);
    if (gap === undefined) out.push(...inserted);
    else if (gap > blankEms && inserted.length === 0 && !isBlank(before) && !isBlank(glyph))
      out.push(blankBetween(before, glyph));
    else if (gap > touchingEms && !/^\p{M}/u.test(glyph.character)) out.push(...inserted);
    inserted = [];
    out.push(glyph);
    // The mark of a cluster may be narrower than its letter, or have no width.
    before = gap !== undefined && before && glyph.right < before.right && glyph.left >= before.left ? before : glyph;
  }
  return [...out, ...inserted];
}

/** The gap in ems between glyphs on one line of text from left to right; undefined for others. */
function gapBetween(before: Glyph, glyph: Glyph): number | undefined {
  const size = Math.max(1, Math.min(before.style.size, glyph.style.size));
  if (before.turn !== 0 || glyph.turn !== 0 || Math.abs(before.baseline - glyph.baseline) > size * 0.5)
    return undefined;
  if (glyph.left < before.left - size * 0.5) return undefined;
  return (glyph.left - before.right) / size;
}

function isBlank(glyph: Glyph | undefined): boolean {
  return glyph?.character.trim() === '';
}

function blankBetween(before: Glyph | undefined, glyph: Glyph): Glyph {
  return {
    ...glyph,
    character: ' ',
    left: before?.right ?? glyph.left,
    right: glyph.left,
    generated: true,
    hyphen: false,
  };
}

const consonant = '[\\u0915-\\u0939\\u0958-\\u095f]\\u093c?';
/** The short i of Devanagari, drawn before the consonants that it follows. */
const earlyVowel = new RegExp(
  `(?<![\\u0915-\\u0939\\u0958-\\u095f\\u093c])\\u093f((?:${consonant}\\u094d)*${consonant})`,
  'g',
);

/**
 * Text of files that list glyphs as drawn, in the order of letters: vowels of Devanagari that are drawn before or in two
 * parts, and the Thai and Lao am, which fonts draw as a ring and an a.
 */
export function orderClusters(text: string): string {
  return text
    .replaceAll(earlyVowel, '$1\u093f')
    .replaceAll(/(?<=[\u0915-\u0939\u0958-\u095f\u093c])\u093e\u0947/g, '\u094b')
    .replaceAll(/(?<=[\u0915-\u0939\u0958-\u095f\u093c])\u093e\u0948/g, '\u094c')
    .replaceAll(/\u0906\u0947/g, '\u0913')
    .replaceAll(/\u0906\u0948/g, '\u0914')
    .replaceAll(/\u0e4d([\u0e48-\u0e4b]?)\u0e32/g, '$1\u0e33')
    .replaceAll(/([\u0e48-\u0e4b])\u0e4d\u0e32/g, '$1\u0e33')
    .replaceAll(/\u0ecd([\u0ec8-\u0ecb]?)\u0eb2/g, '$1\u0eb3');
}
