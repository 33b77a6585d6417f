import { createHash } from 'node:crypto';
import type { Static } from 'typebox';
import { parseContentDigest } from '../http/body/content-digest.ts';
import { decodeLongBase64, findLongText, notBase64 } from '../http/body/long-text.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import { isImage } from './media-types.ts';
import type { pictureSchema } from './schema.ts';

export type PictureInput = Static<typeof pictureSchema>;

/** Strict RFC 4648 section 4: no white space, no URL-safe letters, with padding. 422 on the member otherwise. */
export function readBase64(field: string, text: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw notBase64(field);
  return bytes;
}

/** The bytes of a member `data`; a long one is decoded while they are read. 422 on the field. */
export function readData(field: string, holder: { data: string }, app: string): Uint8Array | AsyncIterable<Uint8Array> {
  const long = findLongText(holder, 'data');
  return long ? decodeLongBase64(field, long, app) : readBase64(field, holder.data);
}

/** The same of a picture. 422 on an invalid member. */
export function readPicture(field: string, picture: PictureInput, app: string): ReturnType<typeof readData> {
  if (!isImage(picture.mime_type)) throw invalidField(`${field}.mime_type`, 'must be an image type');
  return readData(`${field}.data`, picture, app);
}

/** 422 `not_an_image`: only files with an image type can be made public. */
export function requireSharable(contentType: string): void {
  if (isImage(contentType)) return;
  throw new AppError('not_an_image', 'Only files with an image content type can be shared.', {
    fields: [{ field: 'share', message: 'is for image content types only' }],
  });
}

/**
 * A filename from a header: UTF-8, plain or percent-encoded (a literal `%` is `%25`). 422 when it is neither, empty or
 * too long.
 */
export function readFilenameHeader(value: string | undefined, charactersMax: number): string {
  const field = 'x-filename';
  if (value === undefined || value === '') throw invalidField(field, 'is required');
  let filename: string;
  try {
    // Node decodes headers as Latin-1, one character per byte.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(value, 'latin1'));
    filename = decodeURIComponent(text);
  } catch {
    throw invalidField(field, 'is not percent-encoded UTF-8 (write a literal % as %25)');
  }
  if (filename.includes('\0')) throw invalidField(field, 'must not contain the character U+0000');
  if ([...filename].length > charactersMax) throw invalidField(field, `has more than ${charactersMax} characters`);
  return filename;
}

/** The bytes do not match the announced digest. */
export class DigestMismatch extends Error {}

export type DigestCheck = {
  /** SHA-256 in hex, checked by the blob store. */
  checksum?: string;
  /** Passes the bytes on, and throws DigestMismatch at the end when another digest does not match. */
  checked(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
};

/** The digest to check from a Content-Digest header. 422 when it contains no supported digest. */
export function readDigestHeader(header: string | undefined): DigestCheck {
  if (header === undefined) return { checked: (body) => body };
  const digest = parseContentDigest(header);
  if (!digest) throw invalidField('content-digest', 'must contain sha-256=:base64: or sha-512=:base64: (RFC 9530)');
  const { sha256, sha512 } = digest;
  return {
    ...(sha256 === undefined ? {} : { checksum: sha256.toString('hex') }),
    checked: sha512 === undefined ? (body) => body : (body) => checkSha512(body, sha512),
  };
}

async function* checkSha512(body: AsyncIterable<Uint8Array>, expected: Buffer): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha512');
  for await (const chunk of body) {
    hash.update(chunk);
    yield chunk;
  }
  if (!hash.digest().equals(expected)) throw new DigestMismatch('The SHA-512 of the body does not match.');
}
