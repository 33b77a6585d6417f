import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BlobStore } from '../blob/blob-store.ts';
import { AppError } from '../errors.ts';
import { oneHeader } from '../http/headers.ts';
import { isNotModified, isRangeCurrent, parseRange } from '../http/ranges.ts';

/** What is sent: a blob of known size, and what makes one version of it different from another. */
type Bytes = { blobKey: string; size: number; contentType: string; checksum: string; createdAt: Date };

/**
 * Answers a GET or HEAD with the bytes of a blob: whole, one range of them, or the news that the client has them
 * already. `headers` go with each of these answers. Contents never change, so their checksum is the tag.
 * Throws 416, and BlobMissing before anything was sent.
 */
export async function sendBytes(
  { blobs, request, reply }: { blobs: BlobStore; request: FastifyRequest; reply: FastifyReply },
  bytes: Bytes,
  headers: Record<string, string>,
): Promise<FastifyReply> {
  const validators = { etag: `"${bytes.checksum}"`, lastModified: bytes.createdAt };
  const always = {
    'accept-ranges': 'bytes',
    etag: validators.etag,
    'last-modified': validators.lastModified.toUTCString(),
    ...headers,
  };
  const isHead = request.method === 'HEAD';
  if (isNotModified(request.headers, validators)) {
    reply.code(304).headers(always);
    return isHead ? reply.send(nothing()) : reply.send();
  }
  // Ranges are defined for GET alone (RFC 9110 section 14.2).
  const range =
    !isHead && isRangeCurrent(oneHeader(request, 'if-range'), validators)
      ? parseRange(request.headers.range, bytes.size)
      : ({ kind: 'whole' } as const);
  if (range.kind === 'unsatisfiable')
    throw new AppError('range_not_satisfiable', `The file has ${bytes.size} bytes.`, {
      headers: { 'content-range': `bytes */${bytes.size}` },
    });
  const { start, end } = range.kind === 'part' ? range : { start: 0, end: bytes.size };
  const body = isHead ? nothing() : await blobs.read(bytes.blobKey, range.kind === 'part' ? range : undefined);
  if (range.kind === 'part') reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${bytes.size}`);
  else reply.code(200);
  return reply
    .headers({ ...always, 'content-type': bytes.contentType, 'content-length': String(end - start) })
    .send(body);
}

/** An answer to HEAD keeps its Content-Length only when its body is a stream: of any other, the kit counts the bytes. */
function nothing(): Readable {
  return Readable.from([]);
}
