import { imageSize as readImageSize } from 'image-size';
import type { ImageSize } from './types.ts';

/**
 * Pixels (width and height) of a PNG, JPEG, GIF, WebP, BMP, TIFF, AVIF, HEIC or SVG, read from its header alone;
 * undefined for anything else, and for a header that is damaged or cut short.
 */
export function imageSize(bytes: Uint8Array): ImageSize | undefined {
  try {
    const { width, height } = largestImage(readImageSize(bytes));
    return width > 0 && height > 0 ? { width: Math.round(width), height: Math.round(height) } : undefined;
  } catch {
    // The library throws TypeError for formats that it does not know and RangeError for headers that are cut short.
    return undefined;
  }
}

/** A HEIC or AVIF file may hold several pictures, such as a thumbnail beside the photo. */
function largestImage({ width, height, images = [] }: ImageSize & { images?: ImageSize[] }): ImageSize {
  return images.reduce((best, one) => (one.width * one.height > best.width * best.height ? one : best), {
    width,
    height,
  });
}
