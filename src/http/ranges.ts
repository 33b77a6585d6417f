import type { IncomingHttpHeaders } from 'node:http';
import fresh from 'fresh';

/** What a request wants of a body of known size: `end` is the first byte that is no longer meant. */
type RangeAnswer = { kind: 'whole' } | { kind: 'part'; start: number; end: number } | { kind: 'unsatisfiable' };

type Validators = {
  /** Strong, with its quotes. */
  etag: string;
  lastModified: Date;
};

const whole: RangeAnswer = { kind: 'whole' };

/**
 * Reads a Range header (RFC 9110 section 14). One range of bytes is answered as asked for; several at once, other units
 * and what is not a range at all are answered with the whole body, as the RFC allows.
 */
export function parseRange(header: string | undefined, size: number): RangeAnswer {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header?.trim() ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (!match || (first === '' && last === '')) return whole;
  if (first === '') {
    const suffix = Math.min(Number(last), size);
    return suffix === 0 ? { kind: 'unsatisfiable' } : { kind: 'part', start: size - suffix, end: size };
  }
  const start = Number(first);
  // As large as they like: a double would take two of them for equal.
  if (last !== '' && BigInt(last) < BigInt(first)) return whole;
  if (start >= size) return { kind: 'unsatisfiable' };
  return { kind: 'part', start, end: last === '' ? size : Math.min(Number(last) + 1, size) };
}

/** Whether the client has this body already: If-None-Match, and only without it If-Modified-Since (section 13). */
export function isNotModified(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  // fetch() adds "Cache-Control: no-cache" to a conditional request, and "fresh" would then never say so.
  const { 'cache-control': _ignored, ...conditions } = headers;
  return fresh(conditions, { etag, 'last-modified': lastModified.toUTCString() });
}

/** Whether a range may be answered: If-Range is absent, or names exactly this body. A weak tag never does. */
export function isRangeCurrent(ifRange: string | undefined, { etag, lastModified }: Validators): boolean {
  if (ifRange === undefined) return true;
  const value = ifRange.trim();
  if (value.includes('"')) return value === etag;
  return Date.parse(value) === wholeSeconds(lastModified);
}

/** HTTP dates have no smaller unit. */
function wholeSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1_000) * 1_000;
}
