import type { FastifyRequest } from 'fastify';
import { isFromConnection, refuseEncodedBody, requireMinimumSpeed } from '../http/body/body.ts';
import { AppError } from '../lib/errors.ts';
import { markSingleUse } from '../lib/single-use-bytes.ts';

/** Runs `work`, which reads the body. A client that disconnects in the middle of it gets 400 instead of a server error. */
export async function translateDisconnect<T>(request: FastifyRequest, work: () => Promise<T>): Promise<T> {
  refuseEncodedBody(request);
  try {
    return await requireMinimumSpeed(request, work());
  } catch (error) {
    // Discard the rest of the body, so that the client reads the response.
    request.raw.resume();
    if (!request.raw.complete && request.raw.destroyed && !(error instanceof AppError))
      throw new AppError('invalid_parameters', 'The connection was closed before the end of the body.', {
        cause: error,
      });
    throw error;
  }
}

/** The body's chunks, each for a single use. A reader that stops early leaves the connection open for the response. */
export async function* bodyOf(request: FastifyRequest): AsyncGenerator<Uint8Array> {
  const isSingleUse = isFromConnection(request);
  for await (const chunk of request.raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    request.bodyHash?.update(chunk);
    if (isSingleUse) markSingleUse(chunk);
    yield chunk;
  }
}

/** The announced length of the body in bytes; undefined without one. */
export function lengthOf(request: FastifyRequest): number | undefined {
  const length = request.headers['content-length'];
  return length === undefined ? undefined : Number(length);
}
