import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { readBase64, requireSharable } from '../files/input.ts';
import { bodyBudgets } from '../http/body/budgets.ts';
import { parseExactJson } from '../http/body/json.ts';
import { oneHeader } from '../http/headers.ts';
import { checkBody } from '../http/route/validation.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import { uploadedFileSchema } from './schema.ts';

/* The headers of tus 1.0 (https://tus.io/protocols/resumable-upload). */

export const tusVersion = '1.0.0';
export const bodyType = 'application/offset+octet-stream';
const checksumAlgorithms = ['sha1', 'sha256', 'sha512'];

/** The headers of a response to OPTIONS. */
export function describeProtocol(bytesMax: number): Record<string, string> {
  return {
    'tus-resumable': tusVersion,
    'tus-version': tusVersion,
    'tus-extension': 'creation,creation-with-upload,termination,checksum,expiration',
    'tus-max-size': String(bytesMax),
    'tus-checksum-algorithm': checksumAlgorithms.join(','),
  };
}

/** 412 unless the request names this version of tus. The header may be absent unless it is `required`. */
export function requireVersion(request: FastifyRequest, required: boolean): void {
  const version = oneHeader(request, 'tus-resumable');
  if (version === tusVersion || (version === undefined && !required)) return;
  throw new AppError('precondition_failed', `Send the header Tus-Resumable: ${tusVersion}.`, {
    headers: { 'tus-version': tusVersion },
  });
}

/** 415 for a body of any other type. A request without a body needs no type. */
export function requireBodyType(request: FastifyRequest, required: boolean): void {
  const type = request.headers['content-type'];
  if (type === bodyType || (!required && !hasBody(request))) return;
  throw new AppError('unsupported_media_type', `Send the bytes with Content-Type: ${bodyType}.`);
}

export function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Reads a number of bytes from a header; 422 if it is not one. */
export function readByteCount(request: FastifyRequest, name: string): number {
  const text = oneHeader(request, name);
  if (text === undefined) throw invalidField(name, 'is required');
  const bytes = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(bytes)) throw invalidField(name, 'must be a number of bytes');
  return bytes;
}

/** What the metadata of an upload says about its file. */
type UploadedFile = Static<typeof uploadedFileSchema>;

/**
 * Reads Upload-Metadata: pairs of a name and a base64 text. 422 on an invalid or unknown pair, and in a new header on a
 * number that cannot be stored exactly.
 */
export function readMetadata(header: string | undefined, { isNew = false } = {}): UploadedFile {
  const members: Record<string, unknown> = {};
  for (const pair of (header ?? '').split(',').filter((part) => part.trim() !== '')) {
    const [key = '', encoded = '', ...rest] = pair.trim().split(/ +/);
    if (rest.length > 0) throw invalidField('upload-metadata', 'must be pairs of a name and a base64 text');
    const name = key === 'filetype' ? 'content_type' : key;
    if (Object.hasOwn(members, name)) throw invalidField(name, 'is sent twice');
    members[name] = readMember(name, readText(name, encoded), isNew);
  }
  const file = checkBody(uploadedFileSchema, members);
  if (file.share === true) requireSharable(file.content_type);
  return file;
}

function readText(name: string, encoded: string): string {
  const bytes = readBase64(name, encoded);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw invalidField(name, 'is not UTF-8');
  }
}

/** Metadata values are text. For members that are not strings, the text is JSON. */
function readMember(name: string, text: string, isNew: boolean): unknown {
  if (name !== 'share' && name !== 'acl' && name !== 'provider_metadata') return text;
  const refuse = () => {
    throw invalidField(name, 'is not JSON');
  };
  if (isNew) return parseExactJson(Buffer.from(text), bodyBudgets.map.valuesMax, name, refuse);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return refuse();
  }
}

/** Passes a body on. At the end, throws 460 if the body does not have the announced checksum. */
export type BodyCheck = (body: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>;

/** Reads Upload-Checksum. Undefined without the header, 422 unless it is an algorithm and a base64 digest. */
export function readChecksum(request: FastifyRequest): BodyCheck | undefined {
  const header = oneHeader(request, 'upload-checksum');
  if (header === undefined) return undefined;
  const [algorithm = '', encoded = '', ...rest] = header.split(' ');
  if (!checksumAlgorithms.includes(algorithm) || rest.length > 0)
    throw invalidField('upload-checksum', `must be one of ${checksumAlgorithms.join(', ')}, a space and base64`);
  const expected = readBase64('upload-checksum', encoded);
  return async function* checked(body) {
    const hash = createHash(algorithm);
    for await (const chunk of body) {
      hash.update(chunk);
      yield chunk;
    }
    if (!hash.digest().equals(expected))
      throw new AppError('checksum_mismatch', 'The body does not match its Upload-Checksum. None of it was stored.');
  };
}
