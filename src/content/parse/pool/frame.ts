import { freeBytes } from '../../../lib/single-use-bytes.ts';

/**
 * Messages between the pool and a parser process: a JSON header followed by raw bytes, so that documents and Markdown
 * cross the pipe unencoded, and nothing from a parser process is deserialised as objects.
 *
 *   u32 header bytes | u32 blob bytes | header (JSON, with the blobs' lengths) | blobs
 */
export type Frame = { header: FrameHeader; blobs: Buffer[] };
type FrameHeader = Record<string, unknown>;

/**
 * The parts of one message, to be written in order. A short message has one part, because each part costs both sides
 * a system call and the reader a turn.
 */
export function encodeFrame(header: FrameHeader, blobs: Uint8Array[]): Uint8Array[] {
  const json = Buffer.from(JSON.stringify({ ...header, blobs: blobs.map((blob) => blob.byteLength) }));
  const blobBytes = blobs.reduce((sum, blob) => sum + blob.byteLength, 0);
  const prefix = Buffer.alloc(8);
  prefix.writeUInt32LE(json.byteLength, 0);
  prefix.writeUInt32LE(blobBytes, 4);
  const parts = [prefix, json, ...blobs];
  return json.byteLength + blobBytes <= onePartBytesMax ? [Buffer.concat(parts)] : parts;
}

const onePartBytesMax = 64 * 1024;

/**
 * Collects chunks of a stream, which nothing else may use, and returns whole messages. Throws on a message over
 * `frameBytesMax`.
 */
export class FrameReader {
  #chunks: Buffer[] = [];
  #length = 0;
  #needed = 8;
  readonly #frameBytesMax: number;

  constructor(frameBytesMax: number) {
    this.#frameBytesMax = frameBytesMax;
  }

  push(chunk: Buffer): Frame[] {
    this.#chunks.push(chunk);
    this.#length += chunk.byteLength;
    const frames: Frame[] = [];
    while (this.#length >= this.#needed) {
      const bytes = this.#join();
      const headerLength = bytes.readUInt32LE(0);
      const total = 8 + headerLength + bytes.readUInt32LE(4);
      if (total > this.#frameBytesMax) throw new RangeError(`message of ${total} bytes`);
      if (bytes.byteLength >= total) {
        frames.push(decode(bytes.subarray(0, total), headerLength));
        this.#chunks = [bytes.subarray(total)];
        this.#needed = 8;
      } else {
        this.#chunks = [bytes];
        this.#needed = total;
      }
      this.#length = bytes.byteLength - (bytes.byteLength >= total ? total : 0);
    }
    return frames;
  }

  #join(): Buffer {
    const [first] = this.#chunks;
    if (first && this.#chunks.length === 1) return first;
    const all = Buffer.concat(this.#chunks);
    for (const chunk of this.#chunks) freeBytes(chunk);
    return all;
  }
}

function decode(bytes: Buffer, headerLength: number): Frame {
  const header: unknown = JSON.parse(bytes.toString('utf8', 8, 8 + headerLength));
  if (typeof header !== 'object' || header === null) throw new TypeError('message without a header');
  const fields = header as FrameHeader;
  const lengths: unknown[] = Array.isArray(fields.blobs) ? fields.blobs : [];
  const blobs: Buffer[] = [];
  let offset = 8 + headerLength;
  for (const length of lengths) {
    if (typeof length !== 'number') throw new TypeError('message with a bad blob length');
    blobs.push(bytes.subarray(offset, offset + length));
    offset += length;
  }
  return { header: fields, blobs };
}
