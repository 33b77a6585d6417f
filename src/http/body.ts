import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '../errors.ts';
import { bodyBudgets } from './budgets.ts';
import { parseJson } from './json.ts';

/** Takes JSON bodies exactly as sent, within the budget of their route. An empty body is no body; other media types are 415. */
export function readJsonBodies(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser(/^application\/(?:[\w.+-]+\+)?json(?:;|$)/i, async (request: FastifyRequest) => {
    const budget = request.routeOptions.config.budget ?? bodyBudgets.small;
    const bytes = await readBody(request, budget.bytesMax);
    return bytes.length === 0 ? undefined : parseJson(bytes, budget.valuesMax);
  });
}

/** The whole body, its `Content-Encoding` undone. 413 beyond `bytesMax`, before decoding or after. */
export async function readBody(request: FastifyRequest, bytesMax: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax);
  const decoder = createDecoder(request);
  if (decoder === undefined) return collect(request.raw, bytesMax);
  const received = bound(request.raw, bytesMax);
  request.raw.pipe(decoder);
  try {
    return await Promise.race([received, collect(decoder, bytesMax)]);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('invalid_json', 'The request body is not encoded as Content-Encoding says.', { cause: error });
  } finally {
    request.raw.unpipe(decoder);
    request.raw.resume();
    decoder.destroy();
  }
}

/** 415 unless the bytes come as they are: for bodies that are stored while they arrive. */
export function refuseEncodedBody(request: FastifyRequest): void {
  if (encodingOf(request) !== 'identity') throw unsupportedEncoding('identity');
}

function createDecoder(request: FastifyRequest): Transform | undefined {
  switch (encodingOf(request)) {
    case 'identity':
      return undefined;
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    case 'br':
      return createBrotliDecompress();
    default:
      throw unsupportedEncoding('gzip, deflate, br');
  }
}

function encodingOf(request: FastifyRequest): string {
  return (request.headers['content-encoding'] ?? '').trim().toLowerCase() || 'identity';
}

function unsupportedEncoding(supported: string): AppError {
  return new AppError('unsupported_media_type', `Content-Encoding: this path takes ${supported}.`, {
    headers: { 'accept-encoding': supported },
  });
}

function collect(stream: Readable, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const stop = (error?: Error) => {
      stream.off('data', take).off('end', finish).off('error', fail).off('close', abort);
      if (error !== undefined) reject(error);
      else resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size));
    };
    const take = (chunk: Buffer) => {
      size += chunk.length;
      if (size > bytesMax) stop(tooLarge(bytesMax));
      else chunks.push(chunk);
    };
    const finish = () => stop();
    const fail = (error: Error) => stop(error);
    const abort = () => stop(cutShort());
    stream.on('data', take).on('end', finish).on('error', fail).on('close', abort);
  });
}

/** Rejects when more than `bytesMax` come, and never resolves. */
function bound(stream: Readable, bytesMax: number): Promise<never> {
  return new Promise((_, reject) => {
    let size = 0;
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > bytesMax) reject(tooLarge(bytesMax));
    });
    stream.once('error', reject).once('close', () => {
      if (!stream.readableEnded) reject(cutShort());
    });
  });
}

function cutShort(): AppError {
  return new AppError('invalid_json', 'The connection closed before the whole body had come.');
}

function tooLarge(bytesMax: number): AppError {
  return new AppError(
    'payload_too_large',
    `The request body is larger than the ${bytesMax} bytes that are taken here.`,
  );
}
