import { create as contentDisposition } from 'content-disposition';
import { pattern } from '../lib/patterns.ts';

/** `type/subtype` with parameters, as in RFC 9110 section 8.3.1. No match can end a header. */
const mediaType =
  "^[\\w!#$%&'*+.^`|~-]+/[\\w!#$%&'*+.^`|~-]+(?:[ \\t]*;[ \\t]*[\\w!#$%&'*+.^`|~-]+=(?:[\\w!#$%&'*+.^`|~-]+|\"(?:[\\t !#-\\[\\]-~]|\\\\[\\t -~])*\"))*$";
export const mediaTypePattern = pattern(mediaType, 'must be a media type, such as text/plain');

export function isMediaType(text: string): boolean {
  return text.length <= 255 && mediaTypeExpression.test(text);
}

const mediaTypeExpression = new RegExp(mediaTypePattern.pattern);

/** The `type/subtype` of a media type, in lower case, without parameters. */
export function essenceOf(contentType: string): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

export function isImage(contentType: string): boolean {
  return /^image\/./.test(essenceOf(contentType));
}

/** Whether small pictures of this type can be created. Not of SVG, which can contain scripts and load other files. */
export function isPicturable(contentType: string): boolean {
  return /^(?:image\/(?:png|jpeg|webp|gif)|application\/pdf)$/.test(essenceOf(contentType));
}

/**
 * Whether a browser could execute this type when shown inline. Every type is active unless known to be passive, so an
 * unknown type is downloaded and never rendered as a page of this origin.
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
 * A Content-Disposition header (RFC 6266) for an arbitrary filename: a plain name for old clients, without characters
 * special in headers or paths, and, if different, the exact name, percent-encoded (RFC 8187).
 */
export function dispositionOf(filename: string, disposition: 'inline' | 'attachment'): string {
  const plain = filename.replace(/[^ !#$&'()*+,.0-9:;<=>?@A-Z[\]^_`a-z{|}~-]/gu, '_').replace(/^\.+$/, '_');
  return contentDisposition(filename, { type: disposition, fallback: plain });
}
