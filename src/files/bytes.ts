import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BlobMissing, type BlobStore } from '../blob/blob-store.ts';
import { freeWhenSent } from '../http/body/free-when-sent.ts';
import { isNotModified, isRangeCurrent, parseRange } from '../http/body/ranges.ts';
import { oneHeader } from '../http/headers.ts';
import { AppError, notFound } from '../lib/errors.ts';
import type { FileRow } from './store.ts';

type Exchange = { blobs: BlobStore; request: FastifyRequest; reply: FastifyReply };

/**
 * Responds to GET or HEAD with the bytes of a file: all of them (200), one range (206), or 304 for a cached copy.
 * `headers` are added to each response. Contents never change, so the checksum is the entity tag.
 * Throws 416, and 404 if the contents are missing.
 */
export async function sendFile(
  { blobs, request, reply }: Exchange,
  file: Pick<FileRow, 'blobKey' | 'size' | 'contentType' | 'checksum' | 'createdAt'>,
  headers: Record<string, string>,
): Promise<FastifyReply> {
  const validators = { etag: `"${file.checksum.toString('hex')}"`, lastModified: file.createdAt };
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
      ? parseRange(request.headers.range, file.size)
      : ({ kind: 'whole' } as const);
  if (range.kind === 'unsatisfiable')
    throw new AppError('range_not_satisfiable', `The file has ${file.size} bytes.`, {
      headers: { 'content-range': `bytes */${file.size}` },
    });
  const { start, end } = range.kind === 'part' ? range : { start: 0, end: file.size };
  const body = isHead
    ? emptyStream()
    : await blobs.read(file.blobKey, range.kind === 'part' ? range : undefined).catch((error: unknown) => {
        if (!(error instanceof BlobMissing)) throw error;
        // Deleted since the row was read, or lost: `quarry fsck` finds lost contents.
        request.log.warn({ err: error }, 'The contents of a file are missing');
        throw notFound();
      });
  if (range.kind === 'part') reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${file.size}`);
  else reply.code(200);
  if (!isHead) freeWhenSent(reply.raw);
  return reply
    .headers({ ...always, 'content-type': file.contentType, 'content-length': String(end - start) })
    .send(body);
}

/** Fastify keeps the Content-Length of a response to HEAD only when the body is a stream; otherwise it counts the bytes. */
function emptyStream(): Readable {
  return Readable.from([]);
}
