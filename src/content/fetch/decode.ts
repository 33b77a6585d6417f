import { type Duplex, PassThrough, pipeline, type Readable } from 'node:stream';
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
  return decoders.reduce<Readable>(join, body);
}

function join(source: Readable, target: Duplex): Readable {
  // An error anywhere destroys the whole chain; whoever reads the last stream sees it.
  pipeline(source, target, () => {});
  return target;
}

// Answers that stop short of their trailer are common; what came is kept, as browsers do.
const lenient = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };

function decoderFor(encoding: string): Duplex {
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
    case 'deflate':
      return inflateEither();
    default:
      throw new FetchError('bad_response', 'The answer has an unknown encoding.');
  }
}

/** "deflate" means zlib, but some servers send it bare: the first byte tells which. */
function inflateEither(): Duplex {
  let inner: Duplex | undefined;
  const outer = new PassThrough();
  outer._transform = (chunk: Buffer, _encoding, done) => {
    if (inner === undefined) {
      inner = ((chunk[0] ?? 0) & 0x0f) === 8 ? createInflate(lenient) : createInflateRaw(lenient);
      inner.on('data', (piece: Buffer) => {
        if (!outer.push(piece)) inner?.pause();
      });
      inner.on('error', (error) => outer.destroy(error));
    }
    inner.write(chunk, (error) => done(error ?? null));
  };
  outer._flush = (done) => {
    if (inner === undefined) return done();
    inner.on('end', () => done());
    inner.resume();
    inner.end();
  };
  const read = outer._read.bind(outer);
  outer._read = (size) => {
    inner?.resume();
    read(size);
  };
  outer.on('close', () => inner?.destroy());
  return outer;
}
