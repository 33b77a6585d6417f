import { AppError, invalidField } from '../../lib/errors.ts';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Parses a JSON body without altering it. 400 `invalid_json` unless it is JSON. */
export function parseJson(bytes: Uint8Array, valuesMax: number): unknown {
  const value = parseExactJson(bytes, valuesMax, undefined, () => {
    throw new AppError('invalid_json', 'The request body is not valid JSON in UTF-8.');
  });
  // No operation accepts null, and null could not be told from a missing body.
  if (value === null) throw invalidField('body', 'must be object');
  return value;
}

/**
 * Parses JSON without altering it. One pass over the bytes first counts its values: 422 if there are more than
 * `valuesMax`. A number that a double cannot represent is 422 on its field.
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
  const { values, alteredNumberAt } = scan(bytes, valuesMax);
  if (values > valuesMax) throw invalidField(member ?? 'body', `must hold at most ${valuesMax} values`);
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch {
    refuse();
  }
  if (alteredNumberAt >= 0)
    throw invalidField(
      [member, pathAt(bytes, alteredNumberAt)].filter(Boolean).join('.') || 'body',
      'is a number that cannot be stored exactly; send it as a string',
    );
  return value;
}

/** Counts values (stopping after `valuesMax`) and finds the first number that a double alters. Allocates nothing. */
function scan(bytes: Uint8Array, valuesMax: number): { values: number; alteredNumberAt: number } {
  let values = 1;
  let alteredNumberAt = -1;
  for (let at = 0; at < bytes.length && values <= valuesMax; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) at = endOfString(bytes, at);
    else if (byte === comma || byte === bracket || byte === brace) values += 1;
    else if (byte === minus || isDigit(byte)) {
      const end = endOfNumber(bytes, at);
      if (alteredNumberAt < 0 && isAltered(bytes, at, end)) alteredNumberAt = at;
      at = end - 1;
    }
  }
  return { values, alteredNumberAt };
}

const quote = 0x22;
const comma = 0x2c;
const minus = 0x2d;
const bracket = 0x5b;
const backslash = 0x5c;
const brace = 0x7b;
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

/** Fifteen significant digits always survive a double, unless an exponent takes them out of its range. */
const safeNumberLength = 15;

function isAltered(bytes: Uint8Array, from: number, end: number): boolean {
  if (end - from <= safeNumberLength && !hasExponent(bytes, from, end)) return false;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + from, end - from).toString('latin1');
  const read = Number(text);
  return !Number.isFinite(read) || canonicalNumber(text) !== canonicalNumber(String(read));
}

function hasExponent(bytes: Uint8Array, from: number, end: number): boolean {
  for (let at = from; at < end; at++) if (bytes[at] === 0x65 || bytes[at] === 0x45) return true;
  return false;
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

/** The dotted path of the value at this offset of valid JSON, such as `payload.items.3`. Empty for the whole value. */
function pathAt(bytes: Uint8Array, place: number): string {
  const keys: (string | number)[] = [];
  let lastString = '';
  for (let at = 0; at < place; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) {
      const end = endOfString(bytes, at);
      lastString = JSON.parse(Buffer.from(bytes.subarray(at, end + 1)).toString('utf8')) as string;
      at = end;
    } else if (byte === bracket) keys.push(0);
    else if (byte === brace) keys.push('');
    else if (byte === 0x3a) keys[keys.length - 1] = lastString;
    else if (byte === 0x5d || byte === 0x7d) keys.pop();
    else if (byte === comma) {
      const last = keys.at(-1);
      if (typeof last === 'number') keys[keys.length - 1] = last + 1;
    }
  }
  return keys.join('.').replaceAll('\0', '\\u0000').toWellFormed();
}
