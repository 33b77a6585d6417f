import { create as contentDisposition } from 'content-disposition';

/** `type/subtype` with parameters, as RFC 9110 section 8.3.1 spells them; nothing in it can end a header. */
export const mediaTypePattern =
  "^[\\w!#$%&'*+.^`|~-]+/[\\w!#$%&'*+.^`|~-]+(?:[ \\t]*;[ \\t]*[\\w!#$%&'*+.^`|~-]+=(?:[\\w!#$%&'*+.^`|~-]+|\"(?:[\\t !#-\\[\\]-~]|\\\\[\\t -~])*\"))*$";

export function isMediaType(text: string): boolean {
  return text.length <= 255 && mediaType.test(text);
}

const mediaType = new RegExp(mediaTypePattern);

/** The `type/subtype` of a media type, in lower case, without parameters. */
export function essenceOf(contentType: string): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

export function isImage(contentType: string): boolean {
  return /^image\/./.test(essenceOf(contentType));
}

/**
 * Whether a browser would run what such a body says, were it shown in place. Only what is known to be passive is not
 * active: a type that nobody thought of is then a download, never a page of our origin.
 */
export function isActive(contentType: string): boolean {
  const essence = essenceOf(contentType);
  if (essence === 'image/svg+xml' || essence.endsWith('+xml')) return true;
  if (/^(image|audio|video|font)\//.test(essence)) return false;
  return !passiveTypes.has(essence);
}

const passiveTypes = new Set([
  'application/json',
  'application/octet-stream',
  'application/pdf',
  'application/zip',
  'text/csv',
  'text/markdown',
  'text/plain',
]);

/**
 * A Content-Disposition header for a name that may hold anything: RFC 6266 with a plain name for old clients in which
 * nothing means anything to a header or to a path, and the exact one, percent-encoded by RFC 8187, where they differ.
 */
export function dispositionOf(filename: string, disposition: 'inline' | 'attachment'): string {
  const plain = filename.replace(/[^ !#$&'()*+,.0-9:;<=>?@A-Z[\]^_`a-z{|}~-]/gu, '_').replace(/^\.+$/, '_');
  return contentDisposition(filename, { type: disposition, fallback: plain });
}
