import { isUtf8 } from 'node:buffer';
import { type ParsedUrlQuery, parse } from 'node:querystring';

/**
 * Parses a query string. An invalid escape stands for itself. A name or value that is not UTF-8 gets a lone surrogate,
 * which the check of a query refuses: 422 on its name.
 */
export function parseQuery(text: string): ParsedUrlQuery {
  if (!text.includes('%')) return parse(text, '&', '=', { maxKeys: 0 });
  // The decoder throws at each part with an invalid escape, which takes long for thousands of them.
  const escaped = text.replaceAll(/%(?![\da-f]{2})/gi, '%25');
  const decoder = isUtf8(unescapeBytes(escaped)) ? {} : { decodeURIComponent: markPart };
  return parse(escaped, '&', '=', { maxKeys: 0, ...decoder });
}

function markPart(part: string): string {
  const bytes = unescapeBytes(part);
  return isUtf8(bytes) ? bytes.toString() : `${bytes}${loneSurrogate}`;
}

const loneSurrogate = '\ud800';

/** Decodes percent escapes byte by byte. Invalid escapes are kept. */
export function unescapeBytes(raw: string): Buffer {
  const source = Buffer.from(raw, 'latin1');
  const target = Buffer.allocUnsafe(source.length);
  let length = 0;
  for (let i = 0; i < source.length; i++) {
    const high = source[i] === percent ? hexDigit(source[i + 1]) : -1;
    const low = high < 0 ? -1 : hexDigit(source[i + 2]);
    if (low >= 0) i += 2;
    target[length++] = low >= 0 ? high * 16 + low : (source[i] ?? 0);
  }
  return target.subarray(0, length);
}

const percent = 0x25;

function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
