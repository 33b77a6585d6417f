import { type Duplex, pipeline, Readable } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import { FetchError } from './errors.ts';

/** What we can undo, in the order we like it. */
export const acceptEncoding = 'gzip, br, zstd, deflate';

const layersMax = 2;

/** The body without its Content-Encoding. Throws FetchError `bad_response` for an encoding nobody asked for. */
export function decodeBody(body: Readable, contentEncoding: string): Readable {
  const encodings = contentEncoding
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (encodings.length > layersMax) throw new FetchError('bad_response', 'The answer is encoded too many times.');
  const decoders = encodings.reverse().map(decoderFor);
  return decoders.reduce((source, decode) => decode(source), body);
}

function join(source: Readable, target: Duplex): Readable {
  // An error anywhere destroys the whole chain; the reader of the last stream sees it.
  pipeline(source, target, () => {});
  return target;
}

// Answers that stop short of their trailer are common; what came is kept, as browsers do.
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
      throw new FetchError('bad_response', 'The answer has an unknown encoding.');
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
