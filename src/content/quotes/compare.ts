import { kinds, kindTable } from './characters.ts';
import { dashSides, type NormalForm } from './normal-form.ts';

/** Signs before a number that are part of it. */
const signs = '$\u20ac\u00a3\u00a5+\u00b1~<>=\u2264\u2265\u2248';
const units = '%\u2030\u00b0';

/**
 * Whether the units of a text from `start` on say what the quote says: dashes are the same, and neither a word nor a
 * number is cut. The units themselves are known to be equal.
 */
export function saysTheSame(quote: NormalForm, text: NormalForm, start: number): boolean {
  return startsWhole(quote, text, start) && endsWhole(text, start + quote.length) && hasSameDashes(quote, text, start);
}

/**
 * A certain dash in one of the two is a dash in the other. A hyphen at the end of a line may or may not belong to its
 * word. Compares 32 units at a time.
 */
function hasSameDashes(quote: NormalForm, text: NormalForm, start: number): boolean {
  if (quote.dashes.size === 0 && text.dashes.size === 0) return true;
  const { any, certain } = quote.dashBits;
  const { any: textAny, certain: textCertain } = text.dashBits;
  for (let at = 0; at < quote.length; at += 32) {
    const word = at >>> 5;
    const missing = (certain[word] ?? 0) & ~bitsAt(textAny, start + at);
    const more = bitsAt(textCertain, start + at) & ~(any[word] ?? 0);
    if ((missing | more) === 0) continue;
    // What stands before the first unit is not part of the quote, nor is what stands after the last one.
    const left = quote.length - at;
    const inside = (left >= 32 ? -1 : (1 << left) - 1) & (at === 0 ? -2 : -1);
    if (((missing | more) & inside) !== 0) return false;
  }
  return true;
}

/** The 32 bits from this one on. */
function bitsAt(bits: Uint32Array, at: number): number {
  const word = at >>> 5;
  const shift = at & 31;
  const low = (bits[word] ?? 0) >>> shift;
  return shift === 0 ? low : low | ((bits[word + 1] ?? 0) << (32 - shift));
}

function startsWhole(quote: NormalForm, text: NormalForm, start: number): boolean {
  const dash = text.dashes.get(start);
  if (quote.dashes.has(0)) return dash !== undefined;
  if (dash !== undefined) return (dash & dashSides.spaceAfter) !== 0;
  const first = kindAt(text, start);
  const before = kindAt(text, start - 1);
  if (joins(before, first)) return false;
  if (isInside(text, start)) return false;
  const sign = characterAt(text, start - 1);
  const further = kindAt(text, start - 2);
  if (first === kinds.digit) return !signs.includes(sign) && !('.,:/'.includes(sign) && further === kinds.digit);
  return !(first === kinds.letter && sign === "'" && further === kinds.letter);
}

function endsWhole(text: NormalForm, end: number): boolean {
  if (end >= text.length) return true;
  const dash = text.dashes.get(end);
  if (dash !== undefined) return (dash & (dashSides.spaceBefore | dashSides.spaceAfter)) !== 0;
  const last = kindAt(text, end - 1);
  const after = kindAt(text, end);
  if (joins(last, after)) return false;
  if (isInside(text, end - 1)) return false;
  const sign = characterAt(text, end);
  const further = kindAt(text, end + 1);
  if (last === kinds.digit) return !units.includes(sign) && !('.,:/'.includes(sign) && further === kinds.digit);
  return !(last === kinds.letter && sign === "'" && further === kinds.letter);
}

/** Whether a point, an apostrophe or the like is inside a number or a word. */
function isInside(text: NormalForm, at: number): boolean {
  const sides = [kindAt(text, at - 1), kindAt(text, at + 1)];
  const sign = characterAt(text, at);
  if (sign === "'") return sides.every((kind) => kind === kinds.letter);
  return '.,:/'.includes(sign) && sides.every((kind) => kind === kinds.digit);
}

function joins(one: number, other: number): boolean {
  const isPart = (kind: number) => kind === kinds.letter || kind === kinds.digit || kind === kinds.mark;
  return isPart(one) && isPart(other);
}

function kindAt(form: NormalForm, at: number): number {
  if (at < 0 || at >= form.length) return kinds.space;
  return kindTable()[form.units[at] ?? 0x20] ?? kinds.other;
}

/** The character at a unit; a space outside the text, which belongs to no number. */
function characterAt(form: NormalForm, at: number): string {
  return at < 0 || at >= form.length ? ' ' : String.fromCharCode(form.units[at] ?? 0x20);
}
