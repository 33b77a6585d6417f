/*
 * Conversion of values to and from PostgreSQL's text format; only bytes use the binary format. A bigint becomes a
 * number, which is exact up to 2^53 − 1; our counts and sizes stay below. Dates and times become a Date.
 */

/**
 * A value for a `json` or `jsonb` column. Without it, an array, string or number would become the PostgreSQL type of
 * that kind.
 */
export class Json {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

/** The PostgreSQL type of a value. 0 lets PostgreSQL infer it from the column or the cast. */
export function typeOf(value: unknown): number {
  if (typeof value === 'boolean') return 16;
  if (value instanceof Date) return 1184;
  if (value instanceof Uint8Array) return 17;
  if (value instanceof Json) return 3802;
  return 0;
}

/** Converts a value to a parameter. Undefined becomes null. */
export function serialize(value: unknown): string | Buffer | null {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return null;
  if (typeof value === 'boolean') return value ? 't' : 'f';
  if (typeof value !== 'object') return String(value);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Json) return JSON.stringify(value.value) ?? null;
  if (Array.isArray(value)) return serializeArray(value);
  if (value instanceof Uint8Array)
    return Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return JSON.stringify(value);
}

function serializeArray(values: readonly unknown[]): string {
  return `{${values.map(serializeElement).join(',')}}`;
}

function serializeElement(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return serializeArray(value);
  const text = serialize(value);
  const plain = Buffer.isBuffer(text) ? `\\x${text.toString('hex')}` : String(text);
  // Most elements need no escape, and the search for one is faster than two replacements.
  return /["\\]/.test(plain) ? `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : `"${plain}"`;
}

type Parse = (text: string) => unknown;

const parsers: Record<number, Parse> = {};

/** The parser of a column type, or undefined if the value stays text. */
export function parserOf(type: number): Parse | undefined {
  return parsers[type];
}

function register(parse: Parse | undefined, types: readonly (readonly [type: number, array: number])[]): void {
  for (const [type, array] of types) {
    if (parse) parsers[type] = parse;
    parsers[array] = (text) => parseArray(text, parse);
  }
}

// int2, int4, int8, oid, float4, float8
register(Number, [
  [21, 1005],
  [23, 1007],
  [20, 1016],
  [26, 1028],
  [700, 1021],
  [701, 1022],
]);
register((text) => text === 't', [[16, 1000]]);
// date, timestamp, timestamptz
register(parseTime, [
  [1082, 1182],
  [1114, 1115],
  [1184, 1185],
]);
register((text) => Buffer.from(text.slice(2), 'hex'), [[17, 1001]]);
// json, jsonb
register(
  (text) => JSON.parse(text),
  [
    [114, 199],
    [3802, 3807],
  ],
);
// text, varchar, char(n), name, uuid, numeric
register(undefined, [
  [25, 1009],
  [1043, 1015],
  [1042, 1014],
  [19, 1003],
  [2950, 2951],
  [1700, 1231],
]);

/**
 * Parses a time as `new Date` does, but PostgreSQL's usual form in UTC, `2026-11-30 07:44:12.123456+00`, in a third of the
 * time. Digits beyond milliseconds are cut off.
 */
function parseTime(text: string): Date {
  const end = text.length - '+00'.length;
  const isUsual = end >= 19 && end <= 26 && text.charCodeAt(10) === space && text.endsWith('+00');
  if (!isUsual) return new Date(text);
  // The times of a result are often of the same day.
  if (!text.startsWith(last.day)) last = { day: text.slice(0, 10), ms: Date.parse(`${text.slice(0, 10)}T00:00:00Z`) };
  const digit = (at: number): number => (at < end ? text.charCodeAt(at) - zero : 0);
  const pair = (at: number): number => 10 * digit(at) + digit(at + 1);
  const seconds = (pair(11) * 60 + pair(14)) * 60 + pair(17);
  return new Date(last.ms + seconds * 1_000 + 10 * pair(20) + digit(22));
}

const space = 0x20;
const zero = 0x30;
let last = { day: '-', ms: 0 };

/** Parses PostgreSQL's text format of an array: `{a,NULL,"b \"c\"",{…}}`. */
function parseArray(text: string, parse: Parse | undefined): unknown[] {
  let at = text.indexOf('{') + 1;
  /** The first backslash that was not passed yet. It is looked for once, however many elements come before it. */
  let backslash = text.indexOf('\\', at);
  function read(): unknown[] {
    const items: unknown[] = [];
    while (at < text.length) {
      const character = text[at];
      if (character === '}') {
        at += 1;
        return items;
      }
      if (character === ',') at += 1;
      else if (character === '{') {
        at += 1;
        items.push(read());
      } else items.push(character === '"' ? readQuoted() : readPlain());
    }
    return items;
  }
  function readPlain(): unknown {
    const start = at;
    while (text[at] !== ',' && text[at] !== '}') at += 1;
    const item = text.slice(start, at);
    if (item === 'NULL') return null;
    return parse ? parse(item) : item;
  }
  function readQuoted(): unknown {
    let item = '';
    let start = at + 1;
    let quote = text.indexOf('"', start);
    while (backslash !== -1 && backslash < quote) {
      const escaped = backslash + 1;
      item += text.slice(start, backslash);
      // The escaped character begins the next piece, so it is neither an end nor another escape.
      start = escaped;
      if (quote === escaped) quote = text.indexOf('"', escaped + 1);
      backslash = text.indexOf('\\', escaped + 1);
    }
    if (quote === -1) throw new Error('An array of PostgreSQL has an element without an end.');
    item += text.slice(start, quote);
    at = quote + 1;
    return parse ? parse(item) : item;
  }
  return read();
}
