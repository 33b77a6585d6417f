import { type Duplex, pipeline, Readable } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import { asFetchError, FetchError } from '../../fetch/errors.ts';

const layersMax = 2;

type DecodeOptions = {
  /** The Content-Encoding header as received. May be empty. */
  contentEncoding: string;
  bytesMax: number;
  /** Whether a larger body is truncated. Otherwise, decoding it fails. */
  cut?: boolean;
};

/** Decodes the Content-Encoding of a body. Throws FetchError `bad_response` for an invalid encoding, or `too_large`. */
export async function decodeBody(bytes: Uint8Array, options: DecodeOptions): Promise<Uint8Array> {
  const { contentEncoding, bytesMax, cut = false } = options;
  const encodings = namesOf(contentEncoding);
  if (encodings.length === 0 && bytes.byteLength <= bytesMax) return bytes;
  if (encodings.length > layersMax) throw new FetchError('bad_response', 'The response is encoded too many times.');
  const decoders = encodings.reverse().map(decoderFor);
  const stream = decoders.reduce((source, decode) => decode(source), Readable.from([bytes], { objectMode: false }));
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      size += chunk.byteLength;
      if (size > bytesMax && !cut) throw new FetchError('too_large', `The response is larger than ${bytesMax} bytes.`);
      if (cut && size >= bytesMax) break;
    }
  } catch (error) {
    // If a part is better than nothing, the bytes before the damage are kept.
    if (!cut) throw asFetchError(error, false);
  }
  return Buffer.concat(chunks).subarray(0, bytesMax);
}

function namesOf(contentEncoding: string): string[] {
  return contentEncoding
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
}

function join(source: Readable, target: Duplex): Readable {
  // An error anywhere destroys the whole chain; the reader of the last stream sees it.
  pipeline(source, target, () => {});
  return target;
}

// Responses without their trailer are common. The received part is kept, as in browsers.
const lenient = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };

function decoderFor(encoding: string): (source: Readable) => Readable {
  if (encoding === 'deflate') return (source) => Readable.from(inflateEither(source));
  const decoder = decompressorFor(encoding);
  return (source) => join(source, decoder);
}

function decompressorFor(encoding: string): Duplex {
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip(lenient);
    case 'br':
      return createBrotliDecompress({
        flush: constants.BROTLI_OPERATION_FLUSH,
        finishFlush: constants.BROTLI_OPERATION_FLUSH,
      });
    case 'zstd':
      // RFC 9659 limits the web to a window log of 23 (8 MiB). A larger one would let strangers choose how much
      // memory we use.
      return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } });
    default:
      throw new FetchError('bad_response', 'The response has an unknown encoding.');
  }
}

/** "deflate" means zlib, but some servers send raw deflate: the first byte shows which. */
async function* inflateEither(source: Readable): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const first = await chunks.next();
  if (first.done === true) return;
  const inflate = ((first.value[0] ?? 0) & 0x0f) === 8 ? createInflate(lenient) : createInflateRaw(lenient);
  const whole = async function* (): AsyncGenerator<Buffer> {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => chunks };
  };
  yield* join(Readable.from(whole()), inflate) as AsyncIterable<Uint8Array>;
}
