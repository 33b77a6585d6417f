import { unescapeBytes } from '../http/escapes.ts';
import { invalidKey } from './keys.ts';

/** Longer than any valid key. Longer keys are replaced by a marker, and read as a key that is too long. */
const carriedBytesMax = 4_096;

/**
 * Rewrites the path of a key for the router: everything after `/kv/` up to the query becomes one segment that
 * `readPathKey` decodes. Slashes, dots and stray percent signs are part of the key. Every spelling that the router
 * accepts for `/api/v1/kv/` must be rewritten: with scheme and host, or with escaped letters.
 */
export function rewriteKvUrl(target: string): string {
  const url = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const [prefix] = kvPrefix.exec(url) ?? [];
  if (prefix === undefined || unescapeBytes(prefix).toString('latin1') !== '/api/v1/kv/') return url;
  const queryStart = url.indexOf('?');
  const raw = queryStart < 0 ? url.slice(prefix.length) : url.slice(prefix.length, queryStart);
  const query = queryStart < 0 ? '' : url.slice(queryStart);
  return `/api/v1/kv/${encodeSegment(raw)}${query}`;
}

/** Three segments, escaped or not. An escaped slash does not separate segments. */
const kvPrefix = /^(?:\/(?:[a-z0-9]|%(?!2f)[0-9a-f]{2}){2,3}){3}\//i;

/** The key in a segment that `rewriteKvUrl` wrote, which the service checks. 422 on `key` when it is not UTF-8. */
export function readPathKey(segment: string): string {
  // Any other segment did not pass through `rewriteKvUrl`, and decoding it would yield a different key.
  if (!/^(?:x|l|k[\w-]*)$/.test(segment)) throw new Error('The path of a key was not rewritten.');
  if (segment === notUtf8) throw invalidKey('has an escape that is not UTF-8');
  if (segment === tooLong) return '.'.repeat(carriedBytesMax + 1);
  return Buffer.from(segment.slice(1), 'base64url').toString('utf8');
}

const notUtf8 = 'x';
const tooLong = 'l';
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function encodeSegment(raw: string): string {
  const bytes = unescapeBytes(raw);
  try {
    decoder.decode(bytes);
  } catch {
    return notUtf8;
  }
  return bytes.length > carriedBytesMax ? tooLong : `k${bytes.toString('base64url')}`;
}
