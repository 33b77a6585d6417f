import { ToolError } from './errors.ts';

const mark = '\n[cut]';

/** The beginning of a text that is too long, never between surrogates, and a mark that says so. */
export function cutText(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const end = charactersMax - mark.length;
  const last = text.charCodeAt(end - 1);
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? end - 1 : end)}${mark}`;
}

/** The text of a range of UTF-8, without the incomplete characters at its ends. */
export function decodeRange(bytes: Uint8Array, start: number): { content: string; start: number; end: number } {
  let first = 0;
  if (start > 0) while (first < 3 && isContinuation(bytes[first])) first += 1;
  let last = bytes.length;
  for (let at = last - 1; at >= Math.max(first, last - 4); at--) {
    const byte = bytes[at] ?? 0;
    if (isContinuation(byte)) continue;
    const length = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    if (at + length > last) last = at;
    break;
  }
  const content = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(first, last));
  return { content, start: start + first, end: start + last };
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** Whether two ids name the same thing: only what follows the type's prefix identifies it. */
export function isSameId(one: string, other: string): boolean {
  return one.slice(one.indexOf('_') + 1) === other.slice(other.indexOf('_') + 1);
}

/** The one member that is given. */
export function requireOneOf<K extends string>(given: Partial<Record<K, string | undefined>>): [K, string] {
  const present = (Object.entries(given) as [K, string | undefined][]).filter(([, value]) => value !== undefined);
  const [only, ...rest] = present as [K, string][];
  if (only !== undefined && rest.length === 0) return only;
  throw new ToolError('invalid_arguments', `Give exactly one of ${Object.keys(given).join(', ')}.`);
}

/** The parts that are there, as one phrase. */
export function joinParts(...parts: (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== '').join(', ');
}
