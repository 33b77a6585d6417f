import { type PictureFormat, pictureFormats } from '../content/parse/types.ts';
import { invalidField } from '../errors.ts';

export { pictureFormats };

/** The widths of small pictures in pixels. A fixed list: each is a picture to make and to cache. */
export const pictureWidths = [64, 128, 256, 512, 1_024, 2_048] as const;

export type PictureRequest = { width: (typeof pictureWidths)[number]; format: PictureFormat };

/** What a request for a file says about its picture; undefined when it asks for none. */
export function readPictureQuery(query: Partial<PictureRequest>): PictureRequest | undefined {
  const { width, format } = query;
  if (width === undefined && format !== undefined) throw invalidField('format', 'needs a width');
  return width === undefined ? undefined : { width, format: format ?? 'webp' };
}

/** What a signed URL names. Anything that our own URLs never name becomes what no signature covers. */
export function readSignedPicture({ width, format }: Record<string, unknown>): PictureRequest | undefined {
  const knownWidth = pictureWidths.find((one) => String(one) === width);
  const knownFormat = pictureFormats.find((one) => one === format);
  return knownWidth && knownFormat && { width: knownWidth, format: knownFormat };
}

/** What is signed: the use of the link, and the size. */
export function picturePurpose(picture: PictureRequest | undefined): string {
  return picture === undefined ? 'no picture' : `picture/${picture.width}/${picture.format}`;
}
