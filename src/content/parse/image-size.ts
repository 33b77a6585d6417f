import { imageSize as readImageSize } from 'image-size';
import { limits } from '../../lib/limits.ts';
import type { ImageSize } from './types.ts';

/**
 * Reads width and height in pixels of a PNG, JPEG, GIF, WebP, BMP, TIFF, AVIF, HEIC or SVG from its header. Undefined
 * for anything else, for a damaged or truncated header, and for sizes that no picture has.
 */
export function imageSize(bytes: Uint8Array): ImageSize | undefined {
  try {
    const { width, height } = largestImage(readImageSize(bytes));
    const size = { width: Math.round(width), height: Math.round(height) };
    return isLength(size.width) && isLength(size.height) ? size : undefined;
  } catch {
    // The library throws TypeError for unknown formats and RangeError for truncated headers.
    return undefined;
  }
}

/** Headers may state any number. What no picture has, and the database cannot store, is unknown. */
function isLength(pixels: number): boolean {
  return pixels >= 1 && pixels <= limits.integerMax;
}

/** The Exif orientation, from 1 (upright) to 8, which cameras write to a JPEG instead of turning its pixels. */
export function imageOrientation(bytes: Uint8Array): number {
  try {
    return readImageSize(bytes).orientation ?? 1;
  } catch {
    return 1;
  }
}

/** A HEIC or AVIF file may contain several pictures, such as a thumbnail of the photo. */
function largestImage({ width, height, images = [] }: ImageSize & { images?: ImageSize[] }): ImageSize {
  return images.reduce((best, one) => (one.width * one.height > best.width * best.height ? one : best), {
    width,
    height,
  });
}
