import { isPageType, mediaTypeOf } from '../../media-type.ts';

/** Whether a response is a web page, by its type or otherwise by its first bytes. */
export function looksLikeHtml(contentType: string, bytes: Uint8Array): boolean {
  const type = mediaTypeOf(contentType);
  if (type === 'text/html' || type === 'application/xhtml+xml') return !isPdf(bytes);
  if (!isPageType(contentType)) return false;
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 512)).toString('latin1');
  return /^(?:\xef\xbb\xbf)?\s*(?:<!--[^>]*>\s*)?<(?:!doctype html|html|head|body)\b/i.test(head);
}

function isPdf(bytes: Uint8Array): boolean {
  return bytes[0] === 0x25 && bytes[1] === 0x50 && bytes[2] === 0x44 && bytes[3] === 0x46;
}
