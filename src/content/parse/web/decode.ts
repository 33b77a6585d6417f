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
  /** The Content-Encoding header as it came; may be empty. */
  contentEncoding: string;
  bytesMax: number;
  /** What is larger is cut there; without it, it fails. */
  cut?: boolean;
};

/** A body without its Content-Encoding. Throws FetchError: `bad_response` for what cannot be undone, `too_large`. */
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
    // What came before the damage is kept where half is better than nothing.
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

// Responses that stop short of their trailer are common; what came is kept, as browsers do.
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
      // A window log of 23 (8 MiB) is what RFC 9659 lets the web use; more is memory at a stranger's wish.
      return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } });
    default:
      throw new FetchError('bad_response', 'The response has an unknown encoding.');
  }
}

/** "deflate" means zlib, but some servers send it bare: the first byte tells which. */
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
