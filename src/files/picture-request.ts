import { type PictureFormat, pictureFormats } from '../content/parse/types.ts';
import { invalidField } from '../lib/errors.ts';

export { pictureFormats };

/** The widths of small pictures in pixels. A fixed list, because each one is created and cached. */
export const pictureWidths = [64, 128, 256, 512, 1_024, 2_048] as const;

export type PictureRequest = { width: (typeof pictureWidths)[number]; format: PictureFormat };

/** Reads the size and format of a small picture from a query; undefined without a width. Throws 422. */
export function readPictureQuery(query: Partial<PictureRequest>): PictureRequest | undefined {
  const { width, format } = query;
  if (width === undefined && format !== undefined) throw invalidField('format', 'requires width');
  return width === undefined ? undefined : { width, format: format ?? 'webp' };
}

/** Reads the size and format from a signed URL; undefined for values that Quarry never signs, so that they never verify. */
export function readSignedPicture({ width, format }: Record<string, unknown>): PictureRequest | undefined {
  const knownWidth = pictureWidths.find((one) => String(one) === width);
  const knownFormat = pictureFormats.find((one) => one === format);
  return knownWidth && knownFormat && { width: knownWidth, format: knownFormat };
}

/** The purpose in the signature of a link: a small picture of this size and format. */
export function picturePurpose(picture: PictureRequest | undefined): string {
  return picture === undefined ? 'no picture' : `picture/${picture.width}/${picture.format}`;
}
