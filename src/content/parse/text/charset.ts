import { analyse } from 'chardet';
import iconv from 'iconv-lite';

type DecodedText = { text: string; charset: string };

const sampleBytes = 256 * 1024;

/**
 * Decodes text of any charset: by its byte order mark, otherwise as valid UTF-8, otherwise by the claimed charset,
 * the shape of UTF-16, or statistics over the first 256 KiB. Never throws: the fallback is Windows-1252.
 */
export function decodeText(bytes: Uint8Array, claimed?: string): DecodedText {
  const marked = byteOrderMark(bytes);
  if (marked) return { text: decodeAs(bytes.subarray(marked.length), marked.charset) ?? '', charset: marked.charset };
  const wide = wideCharset(bytes) ?? claimedWide(bytes, claimed);
  if (wide) return { text: decodeAs(bytes, wide) ?? '', charset: wide };
  if (!isIso2022(bytes)) {
    const utf8 = decodeUtf8(bytes);
    if (utf8 !== undefined) return { text: utf8, charset: 'utf-8' };
  }
  for (const charset of [claimed, ...guessCharsets(bytes)]) {
    if (charset === undefined || /^(?:utf-?8|us-ascii|ascii)$/i.test(charset)) continue;
    const text = decodeAs(bytes, charset);
    if (text !== undefined && !isWronglyDecoded(text)) return { text, charset: charset.toLowerCase() };
  }
  return { text: iconv.decode(Buffer.from(bytes), 'windows-1252'), charset: 'windows-1252' };
}

/**
 * Whether the bytes look like text in some charset rather than a binary format. Text that was declared as text may
 * contain a few control characters, including NUL. Random or compressed bytes contain more.
 */
export function looksLikeText(bytes: Uint8Array, declaredText = false): boolean {
  if (byteOrderMark(bytes) || wideCharset(bytes)) return true;
  const sample = bytes.subarray(0, 64 * 1024);
  let control = 0;
  for (const byte of sample) {
    if (byte === 0 && !declaredText) return false;
    if (
      byte < 0x20 &&
      byte !== 0x09 &&
      byte !== 0x0a &&
      byte !== 0x0d &&
      byte !== 0x0c &&
      byte !== 0x1b &&
      byte !== 0x08
    )
      control += 1;
  }
  return control <= (declaredText ? Math.max(1, sample.length / 20) : sample.length / 500);
}

/** Normalises line endings to line feeds, and removes NUL, byte order marks and other control characters. */
export function cleanText(text: string): string {
  return (
    text
      .replaceAll(/\r\n?|\u2028|\u2029|\u0085/g, '\n')
      .replaceAll('\f', '\n\n')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: removing them is the purpose
      .replaceAll(/[\u0000-\u0008\u000b\u000e-\u001f\u007f\ufeff\ufffe\uffff]/g, '')
      .toWellFormed()
  );
}

function byteOrderMark(bytes: Uint8Array): { charset: string; length: number } | undefined {
  const [a, b, c, d] = bytes;
  if (a === 0xef && b === 0xbb && c === 0xbf) return { charset: 'utf-8', length: 3 };
  if (a === 0xff && b === 0xfe && c === 0 && d === 0 && bytes.length >= 8) return { charset: 'utf-32le', length: 4 };
  if (a === 0 && b === 0 && c === 0xfe && d === 0xff) return { charset: 'utf-32be', length: 4 };
  if (a === 0xff && b === 0xfe) return { charset: 'utf-16le', length: 2 };
  if (a === 0xfe && b === 0xff) return { charset: 'utf-16be', length: 2 };
  return undefined;
}

/** The claimed UTF-16, if the bytes cannot be text of another charset, which has no control characters. */
function claimedWide(bytes: Uint8Array, claimed: string | undefined): string | undefined {
  const charset = /^utf-?16(?:be|le)?$/i.test(claimed ?? '') && claimed?.toLowerCase().replace(/^utf-?16/, 'utf-16');
  return charset && bytes.subarray(0, sampleBytes).some((byte) => byte < 0x09) ? charset : undefined;
}

/**
 * Detects UTF-16 or UTF-32 without a byte order mark: in Western text, nearly every other byte (or three of four) is
 * zero, and in other alphabets it is below 8.
 */
export function wideCharset(bytes: Uint8Array): string | undefined {
  const length = Math.min(bytes.length & ~3, 4096);
  if (length < 8) return undefined;
  const zeros = [0, 0, 0, 0];
  for (let at = 0; at < length; at++) if (bytes[at] === 0) zeros[at & 3] = (zeros[at & 3] ?? 0) + 1;
  const share = zeros.map((count) => count / (length / 4));
  const [s0 = 0, s1 = 0, s2 = 0, s3 = 0] = share;
  if (s0 < 0.05 && s1 > 0.7 && s2 > 0.95 && s3 > 0.95) return 'utf-32le';
  if (s0 > 0.95 && s1 > 0.95 && s2 > 0.7 && s3 < 0.05) return 'utf-32be';
  if (s1 > 0.6 && s3 > 0.6 && s0 < 0.05 && s2 < 0.05) return 'utf-16le';
  if (s0 > 0.6 && s2 > 0.6 && s1 < 0.05 && s3 < 0.05) return 'utf-16be';
  const low = [0, 0];
  for (let at = 0; at < length; at++) if ((bytes[at] ?? 0) < 0x08) low[at & 1] = (low[at & 1] ?? 0) + 1;
  const [even = 0, odd = 0] = low.map((count) => count / (length / 2));
  if (odd > 0.95 && even < 0.3) return 'utf-16le';
  if (even > 0.95 && odd < 0.3) return 'utf-16be';
  return undefined;
}

/** ISO-2022-JP and its relatives look like ASCII; their escape sequences identify them. */
export function isIso2022(bytes: Uint8Array): boolean {
  const sample = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, sampleBytes));
  return sample.includes('\u001b$B') || sample.includes('\u001b$@') || sample.includes('\u001b$)C');
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return mostlyUtf8(bytes) ? new TextDecoder().decode(bytes) : undefined;
  }
}

/** A few malformed characters (a truncated end, a pasted byte) do not rule out UTF-8. */
function mostlyUtf8(bytes: Uint8Array): boolean {
  const text = new TextDecoder().decode(bytes.subarray(0, sampleBytes));
  const broken = text.split('\ufffd').length - 1;
  if (broken === 0) return true;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: counts what is beyond ASCII
  const wide = text.length - text.replaceAll(/[^\u0000-\u007f]/g, '').length - broken;
  return wide > broken * 20;
}

/** Characters that no correct decoding contains: the bytes are in another charset. */
function isWronglyDecoded(text: string): boolean {
  return /[\u0080-\u0084\u0086-\u009f\ufffd]/.test(text);
}

function guessCharsets(bytes: Uint8Array): string[] {
  if (isIso2022(bytes)) return ['ISO-2022-JP'];
  const found = analyse(Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, sampleBytes)));
  return found.filter((match) => match.confidence >= 10 && !/^UTF-/.test(match.name)).map(({ name }) => widest(name));
}

/** KOI8-U is KOI8-R with Ukrainian letters in place of line-drawing characters. */
export function widest(charset: string): string {
  return charset === 'KOI8-R' ? 'KOI8-U' : charset;
}

/** Undefined if the charset is unknown or the result is malformed. */
function decodeAs(bytes: Uint8Array, charset: string): string | undefined {
  const name = /^iso-8859-1$|^latin-?1$/i.test(charset) ? 'windows-1252' : charset;
  try {
    return new TextDecoder(name).decode(bytes);
  } catch {
    if (!iconv.encodingExists(name)) return undefined;
    return iconv.decode(Buffer.from(bytes), name);
  }
}
