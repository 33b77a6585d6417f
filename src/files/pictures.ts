import type { FastifyReply, FastifyRequest } from 'fastify';
import { BlobMissing, type BlobStore, BlobTooLarge } from '../blob/blob-store.ts';
import { ParseError } from '../content/parse/types.ts';
import type { SmallPicture } from '../content/picture/picture.ts';
import type { Database } from '../db/database.ts';
import { Slots } from '../fairness/slots.ts';
import { isNotModified } from '../http/body/ranges.ts';
import { AppError, notFound } from '../lib/errors.ts';
import { limits } from '../lib/limits.ts';
import { isPicturable } from './media-types.ts';
import { type PictureRequest, picturePurpose } from './picture-request.ts';
import { findPicture, insertPicture } from './picture-store.ts';
import type { FileRow } from './store.ts';

export type PictureDeps = {
  db: Database;
  blobs: BlobStore;
  /** Creates a picture in a parser process, in the app's lane. */
  makePicture: (bytes: Uint8Array, request: PictureRequest, appId: string) => Promise<SmallPicture>;
  /** Bytes of cached pictures per app; 0 turns the cache off. */
  pictureCacheBytesMax: number;
};

type Pictures = { read(file: FileRow, request: PictureRequest): Promise<Uint8Array> };

/** Returns small pictures of files from the cache, or creates each once for all concurrent requests. */
export function createPictures({ db, blobs, makePicture, pictureCacheBytesMax }: PictureDeps): Pictures {
  const slots = new Slots({ slots: 2 * limits.picturesOfAppMax, tooMany });
  const making = new Map<string, Promise<Uint8Array>>();

  async function make(file: FileRow, request: PictureRequest): Promise<Uint8Array> {
    const { bytes } = await slots.run(file.appId, async () => {
      const source = await blobs.readAll(file.blobKey, limits.pictureSourceBytesMax);
      return makePicture(source, request, file.appId);
    });
    if (isCached(request) && pictureCacheBytesMax > 0 && bytes.byteLength <= limits.pictureCachedBytesMax)
      await insertPicture(db, file, request, bytes, pictureCacheBytesMax);
    return bytes;
  }

  return {
    async read(file, request) {
      if (!isPicturable(file.contentType)) throw notFound();
      const cached = isCached(request) ? await findPicture(db, file, request) : undefined;
      if (cached) return cached;
      const key = `${file.appId} ${file.sandboxId} ${file.checksum.toString('hex')} ${picturePurpose(request)}`;
      const current = making.get(key) ?? make(file, request).finally(() => making.delete(key));
      making.set(key, current);
      try {
        return await current;
      } catch (error) {
        throw translatePictureError(error);
      }
    },
  };
}

/** Only pictures of the first page are cached: a document may have thousands of others, each viewed once. */
const isCached = ({ page }: PictureRequest) => page === 1;

/** Responds to GET or HEAD with a picture, or 304 for a cached copy. Its contents, size and page are its entity tag. */
export async function sendPicture(
  { pictures, request, reply }: { pictures: Pictures; request: FastifyRequest; reply: FastifyReply },
  file: FileRow,
  wanted: PictureRequest | undefined,
): Promise<FastifyReply> {
  if (wanted === undefined) throw notFound();
  const { width, format, page } = wanted;
  const etag = `"${file.checksum.toString('hex')}-${width}-${format}${page === 1 ? '' : `-${page}`}"`;
  const headers = {
    etag,
    'last-modified': file.createdAt.toUTCString(),
    'cache-control': 'private, max-age=3600',
    'content-security-policy': "sandbox; default-src 'none'",
  };
  if (isNotModified(request.headers, { etag, lastModified: file.createdAt }))
    return reply.code(304).headers(headers).send();
  const bytes = await pictures.read(file, wanted);
  return reply.headers({ ...headers, 'content-type': `image/${format}` }).send(Buffer.from(bytes));
}

function translatePictureError(error: unknown): unknown {
  if (error instanceof BlobMissing) return notFound();
  if (error instanceof BlobTooLarge)
    return new AppError(
      'file_too_large',
      `Small pictures are created only from files of at most ${error.sizeMax} bytes.`,
    );
  if (!(error instanceof ParseError)) return error;
  return new AppError(error.reason, error.message, { cause: error });
}

function tooMany(): AppError {
  return new AppError('unavailable', 'Too many pictures are waiting. Try again in a moment.', {
    headers: { 'retry-after': '5' },
  });
}
