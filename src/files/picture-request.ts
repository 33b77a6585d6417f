import { type PictureFormat, pictureFormats } from '../content/parse/types.ts';
import { invalidField } from '../lib/errors.ts';

export { pictureFormats };

/** The widths of small pictures in pixels. A fixed list, because each one is created and cached. */
export const pictureWidths = [64, 128, 256, 512, 1_024, 2_048] as const;

/** The page of a PDF that is shown, from 1. Documents may have no more pages than that. */
export const picturePageMax = 10_000;

export type PictureRequest = { width: (typeof pictureWidths)[number]; format: PictureFormat; page: number };

/** Reads the size and format of a small picture from a query; undefined without a width. Throws 422. */
export function readPictureQuery(query: Partial<PictureRequest>): PictureRequest | undefined {
  const { width, format, page } = query;
  for (const [name, value] of Object.entries({ format, page }))
    if (width === undefined && value !== undefined) throw invalidField(name, 'requires width');
  return width === undefined ? undefined : { width, format: format ?? 'webp', page: page ?? 1 };
}

/** Reads the size and format from a signed URL; undefined for values that Quarry never signs, so that they never verify. */
export function readSignedPicture(given: Record<string, unknown>): PictureRequest | undefined {
  const { width, format, page = '1' } = given;
  const knownWidth = pictureWidths.find((one) => String(one) === width);
  const knownFormat = pictureFormats.find((one) => one === format);
  const isPage = typeof page === 'string' && /^[1-9]\d{0,4}$/.test(page);
  return knownWidth && knownFormat && isPage
    ? { width: knownWidth, format: knownFormat, page: Number(page) }
    : undefined;
}

/** The purpose in the signature of a link: a small picture of this size, format and page. */
export function picturePurpose(picture: PictureRequest | undefined): string {
  if (picture === undefined) return 'no picture';
  const { width, format, page } = picture;
  return `picture/${width}/${format}${page === 1 ? '' : `/${page}`}`;
}
