import { imageOrientation } from '../parse/image-size.ts';
import { parseLimits } from '../parse/limits.ts';
import { openPdf } from '../parse/pdf/document.ts';
import { failed, type PictureFormat, unsupported } from '../parse/types.ts';
import { boundPicture } from './bounds.ts';
import { decodePicture, encodePicture, pictureKind } from './codecs.ts';
import { type RgbaImage, shrink, turnUpright } from './shrink.ts';

export type PictureRequest = {
  width: number;
  format: PictureFormat;
  /** The page of a PDF, from 1. Default 1. */
  page?: number | undefined;
};
export type SmallPicture = { width: number; height: number; bytes: Uint8Array };

/**
 * Returns a picture, or a page of a PDF, at most this wide, upright and without metadata. Never enlarges a
 * picture. Runs in a parser process. Throws ParseError.
 */
export async function makePicture(bytes: Uint8Array, request: PictureRequest): Promise<SmallPicture> {
  const { format } = request;
  const picture = await readPixels(bytes, request);
  try {
    return { width: picture.width, height: picture.height, bytes: await encodePicture(picture, format) };
  } catch (error) {
    throw failed(`The picture cannot be written as ${format}.`, error);
  }
}

async function readPixels(bytes: Uint8Array, { width, page = 1 }: PictureRequest): Promise<RgbaImage> {
  const kind = pictureKind(bytes);
  if (kind === undefined) throw unsupported('Only PNG, JPEG, WebP, GIF and PDF can be shown as a picture.');
  if (kind === 'pdf') return readPage(bytes, width, page);
  if (page > 1) throw failed('Only a PDF has pages.');
  const bounded = boundPicture(bytes, parseLimits.smallPicturePixelsMax);
  let picture: RgbaImage;
  try {
    picture = await decodePicture(kind, bounded);
  } catch (error) {
    if (/memory|allocat/i.test(String(error))) throw error;
    throw failed('The picture is damaged or truncated.', error);
  }
  const orientation = kind === 'jpeg' ? imageOrientation(bytes) : 1;
  const [upright, other] = orientation >= 5 ? [picture.height, picture.width] : [picture.width, picture.height];
  const scale = Math.min(1, width / upright);
  const small = [Math.max(1, Math.round(upright * scale)), Math.max(1, Math.round(other * scale))] as const;
  const [across, down] = orientation >= 5 ? [small[1], small[0]] : small;
  return turnUpright(shrink(picture, across, down), orientation);
}

async function readPage(bytes: Uint8Array, width: number, number: number): Promise<RgbaImage> {
  const document = await openPdf(bytes);
  try {
    if (number > document.pageCount) throw failed(`The PDF has ${document.pageCount} pages.`);
    const picture = document.withPage(number - 1, (page) => page.renderColour(width, pagePixelsMax));
    if (!picture) throw failed(`Page ${number} of the PDF cannot be rendered.`);
    return picture;
  } finally {
    document.close();
  }
}

const pagePixelsMax = 12_000_000;
