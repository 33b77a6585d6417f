import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BlobStore } from '../blob/blob-store.ts';
import { freeWhenSent } from '../http/body/free-when-sent.ts';
import { isNotModified, isRangeCurrent, parseRange } from '../http/body/ranges.ts';
import { oneHeader } from '../http/headers.ts';
import { AppError } from '../lib/errors.ts';

/** A blob to send: its size and its validators. */
type Bytes = { blobKey: string; size: number; contentType: string; checksum: string; createdAt: Date };

/**
 * Responds to GET or HEAD with the bytes of a blob: all of them (200), one range (206), or 304 for a cached copy.
 * `headers` are added to each response. Contents never change, so the checksum is the entity tag.
 * Throws 416, and BlobMissing before anything is sent.
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
    return isHead ? reply.send(emptyStream()) : reply.send();
  }
  // Ranges are defined only for GET (RFC 9110 section 14.2).
  const range =
    !isHead && isRangeCurrent(oneHeader(request, 'if-range'), validators)
      ? parseRange(request.headers.range, bytes.size)
      : ({ kind: 'whole' } as const);
  if (range.kind === 'unsatisfiable')
    throw new AppError('range_not_satisfiable', `The file has ${bytes.size} bytes.`, {
      headers: { 'content-range': `bytes */${bytes.size}` },
    });
  const { start, end } = range.kind === 'part' ? range : { start: 0, end: bytes.size };
  const body = isHead ? emptyStream() : await blobs.read(bytes.blobKey, range.kind === 'part' ? range : undefined);
  if (range.kind === 'part') reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${bytes.size}`);
  else reply.code(200);
  if (!isHead) freeWhenSent(reply.raw);
  return reply
    .headers({ ...always, 'content-type': bytes.contentType, 'content-length': String(end - start) })
    .send(body);
}

/** Fastify keeps the Content-Length of a response to HEAD only when the body is a stream; otherwise it counts the bytes. */
function emptyStream(): Readable {
  return Readable.from([]);
}
