import type { IncomingHttpHeaders } from 'node:http';
import fresh from 'fresh';

/** The requested part of a body of known size; `end` is exclusive. */
type RangeResult = { kind: 'whole' } | { kind: 'part'; start: number; end: number } | { kind: 'unsatisfiable' };

type Validators = {
  /** A strong entity tag, with its quotes. */
  etag: string;
  lastModified: Date;
};

const whole: RangeResult = { kind: 'whole' };

/**
 * Parses a Range header (RFC 9110 section 14). Serves a single byte range as requested. Several ranges, other units
 * and invalid headers get the whole body, as the RFC allows.
 */
export function parseRange(header: string | undefined, size: number): RangeResult {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header?.trim() ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (!match || (first === '' && last === '')) return whole;
  if (first === '') {
    const suffix = Math.min(Number(last), size);
    return suffix === 0 ? { kind: 'unsatisfiable' } : { kind: 'part', start: size - suffix, end: size };
  }
  const start = Number(first);
  // The numbers may be arbitrarily large, and two different ones could be the same double.
  if (last !== '' && BigInt(last) < BigInt(first)) return whole;
  if (start >= size) return { kind: 'unsatisfiable' };
  return { kind: 'part', start, end: last === '' ? size : Math.min(Number(last) + 1, size) };
}

/** Whether the client already has this body: If-None-Match, and only without it If-Modified-Since (section 13). */
export function isNotModified(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  return fresh(conditionsOf(headers), { etag, 'last-modified': lastModified.toUTCString() });
}

/** Whether If-None-Match names this entity tag. */
export function isCurrent(headers: IncomingHttpHeaders, etag: string): boolean {
  return fresh({ 'if-none-match': conditionsOf(headers)['if-none-match'] }, { etag });
}

/** fetch() adds "Cache-Control: no-cache" to a conditional request, and `fresh` would then always return false. */
function conditionsOf(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const { 'cache-control': _ignored, ...conditions } = headers;
  return conditions;
}

/** Whether a range may be served: If-Range is absent, or names exactly this body. A weak tag never matches. */
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
