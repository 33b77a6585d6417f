/* What each UTF-16 unit means when texts are compared. */

export const kinds = { other: 0, letter: 1, digit: 2, ideograph: 3, mark: 4, space: 5, removed: 6, dash: 7 } as const;

/** Dashes that are punctuation: what stands on their sides is not one word. */
const longDashes = '\u2014\u2015';
const dashes = `-\u2010\u2011\u2012\u2013\u2212${longDashes}`;
/** Soft hyphens, and characters of no width that do not change letters. */
const invisible = '\u00ad\u200b\u2060\ufeff';

const ideograph = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;

let table: Uint8Array | undefined;

/** The kind of every unit; built once. */
export function kindTable(): Uint8Array {
  if (table !== undefined) return table;
  table = new Uint8Array(65_536);
  for (let unit = 0; unit < table.length; unit++) table[unit] = kindOf(unit);
  return table;
}

function kindOf(unit: number): number {
  // Most of them are ideographs or symbols.
  if (unit >= 0xd800 && unit <= 0xdfff) return kinds.ideograph;
  const character = String.fromCharCode(unit);
  if (invisible.includes(character)) return kinds.removed;
  if (dashes.includes(character)) return kinds.dash;
  if (/\s/u.test(character)) return kinds.space;
  if (/\p{M}/u.test(character)) return kinds.mark;
  if (/\p{N}/u.test(character)) return kinds.digit;
  if (ideograph.test(character)) return kinds.ideograph;
  return /\p{L}/u.test(character) ? kinds.letter : kinds.other;
}

export function isLongDash(character: string): boolean {
  return longDashes.includes(character);
}

/** Characters that are written in several ways. */
export const replacements = new Map<string, string>([
  ...[...'\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u300c\u300d'].map((quote) => [quote, '"'] as const),
  ...[...'\u2018\u2019\u201a\u201b\u2032\u00b4'].map((quote) => [quote, "'"] as const),
  ['\u2026', '...'],
  ['\ufb00', 'ff'],
  ['\ufb01', 'fi'],
  ['\ufb02', 'fl'],
  ['\ufb03', 'ffi'],
  ['\ufb04', 'ffl'],
  ['\ufb05', 'st'],
  ['\ufb06', 'st'],
]);
