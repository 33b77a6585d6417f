import { isUtf8 } from 'node:buffer';
import chardet from 'chardet';
import { isIso2022, wideCharset, widest } from '../text/charset.ts';

/**
 * Decodes a page. The encoding comes from the first of these: byte order mark, Content-Type, <meta> or XML
 * declaration, valid UTF-8, a guess from the text itself. Malformed bytes become U+FFFD.
 */
export function decodeHtml(bytes: Uint8Array, contentType: string): string {
  const marked = byteOrderMark(bytes);
  if (marked !== undefined) return new TextDecoder(marked).decode(bytes);
  const declared = encodingName(/charset\s*=\s*["']?([\w:.-]+)/i.exec(contentType)?.[1]) ?? declaredInside(bytes);
  // Nine of ten pages declare their encoding. A wrong declaration of UTF-8 is detected below.
  if (declared !== undefined && declared !== 'utf-8' && !isSurelyUtf8(bytes))
    return new TextDecoder(declared).decode(bytes);
  const shaped = isIso2022(bytes) ? 'iso-2022-jp' : wideCharset(bytes);
  if (shaped !== undefined) return new TextDecoder(encodingName(shaped)).decode(bytes);
  if (isUtf8(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  const guessed = encodingName(guess(bytes));
  const lossy = new TextDecoder('utf-8').decode(bytes);
  if (declared === undefined && guessed !== undefined) return new TextDecoder(guessed).decode(bytes);
  // A few malformed bytes in declared UTF-8 are an accident; many mean another encoding.
  const broken = lossy.length - lossy.replaceAll('\uFFFD', '').length;
  return guessed !== undefined && guessed !== 'utf-8' && broken > 20 + lossy.length / 200
    ? new TextDecoder(guessed).decode(bytes)
    : lossy;
}

const sequencesMin = 10;

/**
 * Whether the text is UTF-8 whatever the page declares: programs that save or convert pages leave the old declaration.
 * Text in another encoding with that many letters outside of ASCII is never valid UTF-8.
 */
function isSurelyUtf8(bytes: Uint8Array): boolean {
  let sequences = 0;
  for (const byte of bytes) if (byte >= 0xc2 && ++sequences === sequencesMin) return isUtf8(bytes);
  return false;
}

const sampleBytes = 4_096;

function byteOrderMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8';
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  return undefined;
}

function declaredInside(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, sampleBytes)).toString('latin1');
  const label =
    /<meta[^>]{0,400}?charset\s*=\s*["']?\s*([\w:.-]+)/i.exec(head)?.[1] ??
    /^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w:.-]+)/i.exec(head)?.[1];
  const name = encodingName(label);
  // A page whose <meta> could be read byte by byte is not UTF-16, whatever the <meta> says (HTML standard).
  return name?.startsWith('utf-16') ? 'utf-8' : name;
}

function guess(bytes: Uint8Array): string | undefined {
  const found = chardet.detect(bytes.subarray(0, 65_536));
  return found === null ? undefined : widest(found);
}

/** The standard name of an encoding label, or undefined for an unknown label. */
function encodingName(label: string | undefined): string | undefined {
  if (label === undefined) return undefined;
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}
