import { AppError, invalidField } from '../../lib/errors.ts';
import { limits } from '../../lib/limits.ts';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Parses a JSON body without altering it. 400 `invalid_json` unless it is JSON. */
export function parseJson(bytes: Uint8Array, valuesMax: number): unknown {
  return parseScanned(bytes, scanJson(bytes, valuesMax));
}

/** The second step of `parseJson`. For large bodies, each is a turn. */
export function parseScanned(bytes: Uint8Array, scanned: Scanned): unknown {
  const value = parseText(bytes, scanned, undefined, () => {
    throw new AppError('invalid_json', 'The request body is not valid JSON in UTF-8.');
  });
  // No operation accepts null, and null could not be told from a missing body.
  if (value === null) throw invalidField('body', 'must be object');
  return value;
}

/**
 * Parses JSON without altering it.
 * @param member the member of the body whose text this is, if not the whole body
 * @param refuse throws if it is not JSON. The parser's message quotes the text, which may contain a password: it must
 * not reach the log.
 */
export function parseExactJson(
  bytes: Uint8Array,
  valuesMax: number,
  member: string | undefined,
  refuse: () => never,
): unknown {
  return parseText(bytes, scanJson(bytes, valuesMax, member), member, refuse);
}

/** What the scan of JSON has found up to a byte. */
export type Scanned = {
  at: number;
  values: number;
  members: number;
  /** Where the first number begins that a double cannot represent, or -1. */
  alteredNumberAt: number;
};

/**
 * A pass over the bytes of JSON before it is parsed: 422 if there are more than `valuesMax` values, or if more than
 * `jsonMembersMax` of them are members of objects. Each of those costs the parser and the checks several times as much
 * as an item of a list. Allocates nothing for most numbers.
 */
function scanJson(bytes: Uint8Array, valuesMax: number, member = 'body'): Scanned {
  let scanned: Scanned | undefined;
  for (const each of scanInSteps(bytes, valuesMax, member)) scanned = each;
  return scanned as Scanned;
}

/** Yields after each step of the pass. */
export function* scanInSteps(bytes: Uint8Array, valuesMax: number, member = 'body'): Generator<Scanned> {
  const scanned = { at: 0, values: 1, members: 0, alteredNumberAt: -1 };
  do {
    scanStep(bytes, scanned, Math.min(bytes.length, scanned.at + scanStepBytes));
    if (scanned.values > valuesMax) throw invalidField(member, `must hold at most ${valuesMax} values`);
    if (scanned.members > limits.jsonMembersMax)
      throw invalidField(member, `must hold at most ${limits.jsonMembersMax} members of objects`);
    yield scanned;
  } while (scanned.at < bytes.length);
}

const scanStepBytes = 512 * 1024;

function scanStep(bytes: Uint8Array, scanned: Scanned, end: number): void {
  let { at } = scanned;
  for (; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) at = endOfString(bytes, at);
    else if (byte === comma || byte === bracket || byte === brace) scanned.values += 1;
    else if (byte === colon) scanned.members += 1;
    else if (byte === minus || isDigit(byte)) {
      const numberEnd = endOfNumber(bytes, at);
      if (scanned.alteredNumberAt < 0 && isAltered(bytes, at, numberEnd)) scanned.alteredNumberAt = at;
      at = numberEnd - 1;
    }
  }
  scanned.at = at;
}

/** A number that a double cannot represent is 422 on its field, and so is a member that its object has twice. */
function parseText(
  bytes: Uint8Array,
  { alteredNumberAt, members }: Scanned,
  member: string | undefined,
  refuse: () => never,
): unknown {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch {
    refuse();
  }
  const refuseAt = (place: number, message: string): never => {
    throw invalidField([member, pathAt(bytes, place)].filter(Boolean).join('.') || 'body', message);
  };
  if (alteredNumberAt >= 0) refuseAt(alteredNumberAt, 'is a number that cannot be stored exactly; send it as a string');
  // The parser keeps only the last member of a name.
  if (members > 1 && countMembers(value) < members) refuseAt(placeOfSecond(bytes), 'is sent twice');
  return value;
}

/** The members of all objects in a value, which may be nested more deeply than calls may be. */
function countMembers(value: unknown): number {
  let members = 0;
  const open = [value];
  const visit = (each: unknown) => {
    if (typeof each === 'object' && each !== null) open.push(each);
  };
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (Array.isArray(next)) for (const item of next) visit(item);
    // For objects of many members, this takes half the time of Object.values.
    else
      for (const name in next as object) {
        members += 1;
        visit((next as Record<string, unknown>)[name]);
      }
  }
  return members;
}

const quote = 0x22;
const comma = 0x2c;
const minus = 0x2d;
const colon = 0x3a;
const bracket = 0x5b;
const backslash = 0x5c;
const brace = 0x7b;
const closingBrace = 0x7d;
/** Most strings are short. Longer ones are searched natively. */
const shortString = 64;

/** The end of the string that starts at `from`, or the last byte if it is not closed. */
function endOfString(bytes: Uint8Array, from: number): number {
  let at = from + 1;
  for (;;) {
    const stepEnd = Math.min(bytes.length, at + shortString);
    for (; at < stepEnd; at++) {
      if (bytes[at] === quote) return at;
      if (bytes[at] === backslash) at++;
    }
    if (at >= bytes.length) return bytes.length - 1;
    const end = bytes.indexOf(quote, at);
    if (end < 0) return bytes.length - 1;
    let escapes = end;
    while (escapes > at && bytes[escapes - 1] === backslash) escapes--;
    if ((end - escapes) % 2 === 0) return end;
    at = end + 1;
  }
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = from + 1;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    // Digits, decimal point, exponent and its sign.
    if (!isDigit(byte) && byte !== 0x2e && byte !== 0x65 && byte !== 0x45 && byte !== 0x2b && byte !== minus) break;
  }
  return at;
}

/** A double keeps up to 15 significant digits at any exponent in this range, which lies well within its own. */
const safeDigits = 15;
const safeExponent = 250;

function isAltered(bytes: Uint8Array, from: number, end: number): boolean {
  if (isSafe(bytes, from, end)) return false;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + from, end - from).toString('latin1');
  const read = Number(text);
  if (!Number.isFinite(read)) return true;
  const again = String(read);
  return again !== text && canonicalNumber(text) !== canonicalNumber(again);
}

/** Whether a number certainly survives, because it has few digits and a small exponent. */
function isSafe(bytes: Uint8Array, from: number, end: number): boolean {
  let digits = 0;
  let at = from;
  for (; at < end && bytes[at] !== 0x65 && bytes[at] !== 0x45; at++) if (isDigit(bytes[at] ?? 0)) digits++;
  let exponent = 0;
  for (at++; at < end; at++) if (isDigit(bytes[at] ?? 0)) exponent = exponent * 10 + (bytes[at] ?? 0) - 0x30;
  return digits <= safeDigits && exponent <= safeExponent;
}

/** The normal form of a number: its digits without outer zeros, and the exponent of the last digit. */
function canonicalNumber(text: string): string {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [whole = '', fraction = ''] = mantissa.slice(sign.length).split('.');
  const digits = withoutLeadingZeros(whole + fraction);
  const significant = withoutTrailingZeros(digits);
  if (significant === '') return '0';
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}

function withoutLeadingZeros(digits: string): string {
  let from = 0;
  while (digits.charCodeAt(from) === 0x30) from++;
  return digits.slice(from);
}

function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === 0x30) end--;
  return digits.slice(0, end);
}

/** The offset of the value of the first member of valid JSON whose object already has one of that name. */
function placeOfSecond(bytes: Uint8Array): number {
  const names: Set<string>[] = [];
  let lastString = '';
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) {
      const end = endOfString(bytes, at);
      lastString = stringAt(bytes, at, end);
      at = end;
    } else if (byte === brace) names.push(new Set());
    else if (byte === closingBrace) names.pop();
    else if (byte === colon) {
      if (names.at(-1)?.has(lastString)) return at + 1;
      names.at(-1)?.add(lastString);
    }
  }
  throw new Error('No member is there twice.');
}

function stringAt(bytes: Uint8Array, from: number, end: number): string {
  return JSON.parse(Buffer.from(bytes.subarray(from, end + 1)).toString('utf8')) as string;
}

/** The dotted path of the value at this offset of valid JSON, such as `payload.items.3`. Empty for the whole value. */
function pathAt(bytes: Uint8Array, place: number): string {
  const keys: (string | number)[] = [];
  let lastString = '';
  for (let at = 0; at < place; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) {
      const end = endOfString(bytes, at);
      lastString = stringAt(bytes, at, end);
      at = end;
    } else if (byte === bracket) keys.push(0);
    else if (byte === brace) keys.push('');
    else if (byte === colon) keys[keys.length - 1] = lastString;
    else if (byte === 0x5d || byte === closingBrace) keys.pop();
    else if (byte === comma) {
      const last = keys.at(-1);
      if (typeof last === 'number') keys[keys.length - 1] = last + 1;
    }
  }
  return keys.join('.').replaceAll('\0', '\\u0000').toWellFormed();
}
