import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { BackupError } from './error.ts';

/*
 * An encrypted object: a header of 21 bytes (magic, version, salt), then segments of 64 KiB, each with AES-256-GCM and
 * its 16-byte tag. The key of an object is derived from the operator's key, the salt and the object's name, so that
 * objects cannot be swapped. The nonce of a segment is its number and whether it is the last, so that segments cannot be
 * swapped, and a truncated object is detected.
 */
const magic = Buffer.from('QBK1');
const formatVersion = 1;
const saltBytes = 16;
const headerBytes = magic.length + 1 + saltBytes;
const segmentBytes = 64 * 1024;
const tagBytes = 16;
const cipherName = 'aes-256-gcm';

/** The size of an encrypted object with this many bytes of content. */
export function encryptedSize(size: number): number {
  return headerBytes + size + tagBytes * Math.max(1, Math.ceil(size / segmentBytes));
}

/** The size of the content of an encrypted object with this many bytes. */
export function plainSize(size: number): number {
  const body = size - headerBytes;
  return body - tagBytes * Math.max(1, Math.ceil(body / (segmentBytes + tagBytes)));
}

/** Encrypts a stream, with the memory of one segment. */
export async function* encrypt(
  key: string,
  name: string,
  body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer> {
  const header = Buffer.concat([magic, Buffer.from([formatVersion]), randomBytes(saltBytes)]);
  const objectKey = deriveKey(key, header, name);
  yield header;
  let number = 0;
  for await (const { bytes, isLast } of segments(body, segmentBytes)) {
    const cipher = createCipheriv(cipherName, objectKey, nonce(number, isLast));
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
    number += 1;
  }
}

/** Decrypts what `encrypt` wrote under this name. Throws BackupError if it is damaged or truncated, or the key is wrong. */
export async function* decrypt(key: string, name: string, body: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let objectKey: Buffer | undefined;
  let number = 0;
  for await (const { bytes, isLast } of segments(withoutHeader(body, onHeader), segmentBytes + tagBytes)) {
    if (objectKey === undefined) throw new BackupError(`${name} is not an encrypted backup file.`);
    yield open(objectKey, name, bytes, nonce(number, isLast));
    number += 1;
  }

  function onHeader(header: Buffer): void {
    if (!header.subarray(0, magic.length).equals(magic) || header[magic.length] !== formatVersion)
      throw new BackupError(`${name} is not an encrypted backup file.`);
    objectKey = deriveKey(key, header, name);
  }
}

function open(objectKey: Buffer, name: string, segment: Buffer, iv: Buffer): Buffer {
  try {
    const decipher = createDecipheriv(cipherName, objectKey, iv);
    decipher.setAuthTag(segment.subarray(-tagBytes));
    return Buffer.concat([decipher.update(segment.subarray(0, -tagBytes)), decipher.final()]);
  } catch (error) {
    throw new BackupError(`${name} is damaged, or QUARRY_BACKUP_KEY is not the key that it was encrypted with.`, {
      cause: error,
    });
  }
}

function deriveKey(key: string, header: Buffer, name: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, header.subarray(-saltBytes), `quarry backup ${name}`, 32));
}

function nonce(number: number, isLast: boolean): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt8(isLast ? 1 : 0, 0);
  bytes.writeUInt32BE(number, 8);
  return bytes;
}

async function* withoutHeader(
  body: AsyncIterable<Uint8Array>,
  onHeader: (header: Buffer) => void,
): AsyncGenerator<Uint8Array> {
  let header: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of body) {
    if (header === undefined) {
      yield chunk;
      continue;
    }
    header = Buffer.concat([header, chunk]);
    if (header.length < headerBytes) continue;
    onHeader(header.subarray(0, headerBytes));
    yield header.subarray(headerBytes);
    header = undefined;
  }
}

/** The stream in pieces of exactly this size; only the last is shorter. There is always a last one. */
async function* segments(
  body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<{ bytes: Buffer; isLast: boolean }> {
  let waiting: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    waiting.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    bytes += chunk.byteLength;
    // A full piece waits for the next byte, because it may be the last.
    if (bytes <= size) continue;
    let all = Buffer.concat(waiting);
    for (; all.length > size; all = all.subarray(size)) yield { bytes: all.subarray(0, size), isLast: false };
    waiting = [all];
    bytes = all.length;
  }
  yield { bytes: Buffer.concat(waiting), isLast: true };
}
