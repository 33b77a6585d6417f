import { Socket } from 'node:net';
import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '../../lib/errors.ts';
import { freeBytes } from '../../lib/single-use-bytes.ts';
import { whenClosed } from '../closed.ts';
import { turns } from '../limits/turns.ts';
import { type BodyBudget, bodyBudgets } from './budgets.ts';
import { appOf } from './intake.ts';
import { LongTextReader } from './long-text.ts';
import type { TextMemory } from './text-memory.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The long strings of the request's body. */
    bodyText: TextMemory | undefined;
  }
}

/**
 * Parses JSON bodies without changing values, within the budget of their route. An empty body counts as absent; other
 * media types are 415.
 */
export function readJsonBodies(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.decorateRequest('bodyText');
  fastify.addContentTypeParser(/^application\/(?:[\w.+-]+\+)?json(?:;|$)/i, async (request: FastifyRequest) => {
    const budget: BodyBudget = request.routeOptions.config.budget ?? bodyBudgets.small;
    const reader = new LongTextReader();
    const { memory } = reader;
    try {
      await readChunks(request, budget.bytesMax, undefined, (chunk) => {
        reader.push(chunk);
        freeChunk(request, chunk);
      });
      return await reader.end(budget.valuesMax, budget.longTextAt, appOf(request));
    } finally {
      if (memory.bytes > 0) releaseWithResponse(request, memory);
    }
  });
}

/** Frees a chunk whose bytes were copied. */
function freeChunk(request: FastifyRequest, chunk: Buffer): void {
  // A decoder may still use the buffers of its chunks.
  if (isFromConnection(request) && encodingOf(request) === 'identity') freeBytes(chunk);
}

/** Whether the body's chunks come from a connection. An in-process sender may still use its buffers. */
export function isFromConnection({ raw }: FastifyRequest): boolean {
  return raw.socket instanceof Socket;
}

/** Releases the memory when the response is sent or its connection closes. A handler retains it while it works. */
function releaseWithResponse(request: FastifyRequest, memory: TextMemory): void {
  request.bodyText = memory;
  whenClosed(request.response, () => memory.release());
}

/**
 * Reads the whole body and decodes its `Content-Encoding`. 413 beyond `bytesMax`, before or after decoding. `app` is
 * charged for the memory if the request has no credential that names an app.
 */
export async function readBody(request: FastifyRequest, bytesMax: number, app?: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await readChunks(request, bytesMax, app, (chunk) => void chunks.push(chunk));
  return Buffer.concat(chunks);
}

async function readChunks(
  request: FastifyRequest,
  bytesMax: number,
  app: string | undefined,
  take: (chunk: Buffer) => void,
): Promise<void> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > bytesMax) throw tooLarge(bytesMax);
  // The client has left, so neither bytes nor an end will arrive.
  if (request.raw.destroyed) throw cutShort();
  const decoder = createDecoder(request);
  const takeHashed = (chunk: Buffer) => {
    request.bodyHash?.update(chunk);
    take(chunk);
  };
  const encoded = await meterInTurn(request, app, bytesMax, announced);
  if (decoder === undefined)
    return requireMinimumSpeed(request, receive(request.raw, encoded, takeHashed, app ?? appOf(request)));
  const received = count(request.raw, encoded);
  request.raw.pipe(decoder);
  try {
    const decoded = receive(decoder, new Meter(request, app, bytesMax, 0), takeHashed, app ?? appOf(request));
    await requireMinimumSpeed(request, Promise.race([received, decoded]));
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('invalid_json', 'The request body does not match its Content-Encoding.', { cause: error });
  } finally {
    request.raw.unpipe(decoder);
    request.raw.resume();
    decoder.destroy();
  }
}

/** Refusing a body for lack of memory takes a turn too, because repeated large bodies cost the process just as much. */
async function meterInTurn(...[request, app, ...rest]: ConstructorParameters<typeof Meter>): Promise<Meter> {
  try {
    return new Meter(request, app, ...rest);
  } catch (error) {
    await turns.run(
      app ?? appOf(request),
      () => {},
      () => turnBytes,
    );
    throw error;
  }
}

/** Waits for `work` on a body; 408 if the body arrives too slowly. */
export async function requireMinimumSpeed<T>(request: FastifyRequest, work: Promise<T>): Promise<T> {
  let stop = () => {};
  const slow = new Promise<never>((_, reject) => {
    stop = request.server.intake.watch(request, (error) => {
      // Node ends the body when the connection closes, but not once the response is sent: the reader would wait
      // forever.
      request.raw.socket.once('close', () => request.raw.destroy());
      reject(error);
    });
  });
  try {
    return await Promise.race([work, slow]);
  } finally {
    stop();
  }
}

/** 415 if the body has a Content-Encoding. For bodies that are stored while they arrive. */
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
  return new AppError('unsupported_media_type', `Content-Encoding: this path accepts ${supported}.`, {
    headers: { 'accept-encoding': supported },
  });
}

/** Limits the bytes of one body and, for large bodies, the memory that all bodies share. */
class Meter {
  readonly #request: FastifyRequest;
  readonly #app: string | undefined;
  readonly #bytesMax: number;
  #bytes = 0;
  #held = 0;

  constructor(request: FastifyRequest, app: string | undefined, bytesMax: number, announced: number) {
    this.#request = request;
    this.#app = app;
    this.#bytesMax = bytesMax;
    this.#hold(announced);
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#bytesMax) throw tooLarge(this.#bytesMax);
    if (this.#bytes > this.#held) this.#hold(Math.min(this.#bytesMax, 2 * this.#bytes) - this.#held);
  }

  /** The number of connections already bounds the memory of small bodies. */
  #hold(bytes: number): void {
    if (this.#held + bytes <= bodyBudgets.small.bytesMax) return;
    this.#request.server.intake.hold(this.#request, bytes, this.#app);
    this.#held += bytes;
  }
}

/** Passes the chunks of a body to `take`. Large bodies take turns. */
function receive(stream: Readable, meter: Meter, take: (chunk: Buffer) => void, app: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let sinceTurn = 0;
    const waitForTurn = async (bytes: number) => {
      stream.pause();
      await turns.run(
        app,
        () => {},
        () => bytes,
      );
      stream.resume();
    };
    const stop = (error?: unknown) => {
      stream.off('data', receiveChunk).off('end', stop).off('error', fail).off('close', abort);
      if (error !== undefined) reject(error);
      else resolve();
    };
    const receiveChunk = (chunk: Buffer) => {
      try {
        meter.add(chunk.length);
        take(chunk);
        sinceTurn += chunk.length;
        if (sinceTurn < turnBytes) return;
        void waitForTurn(sinceTurn);
        sinceTurn = 0;
      } catch (error) {
        stop(error);
      }
    };
    const abort = () => stop(cutShort());
    const fail = (error: NodeJS.ErrnoException) => stop(error.code === 'ECONNRESET' ? cutShort() : error);
    stream.on('data', receiveChunk).on('end', stop).on('error', fail).on('close', abort);
  });
}

/** Rejects if more bytes arrive than the meter allows. Never resolves. */
function count(stream: Readable, meter: Meter): Promise<never> {
  return new Promise((_, reject) => {
    stream.on('data', (chunk: Buffer) => {
      try {
        meter.add(chunk.length);
      } catch (error) {
        reject(error);
      }
    });
    stream.once('error', reject).once('close', () => {
      if (!stream.readableEnded) reject(cutShort());
    });
  });
}

function cutShort(): AppError {
  return new AppError('invalid_json', 'The connection closed before the whole body arrived.');
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('payload_too_large', `The request body is larger than the limit of ${bytesMax} bytes.`);
}

/** The minimum number of bytes that one turn receives. */
const turnBytes = 256 * 1024;
