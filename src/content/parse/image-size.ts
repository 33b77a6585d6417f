import type { ImageSize } from './types.ts';

/** Pixels of a PNG, JPEG, GIF, WebP, BMP, TIFF, AVIF/HEIC or SVG, read from its header alone; undefined for anything else. */
export function imageSize(bytes: Uint8Array): ImageSize | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const read of [png, gif, bmp, webp, jpeg, tiff, isoMedia, svg]) {
    try {
      const size = read(bytes, view);
      if (size && size.width > 0 && size.height > 0) return size;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error; // the header is cut short
    }
  }
  return undefined;
}

/** `image/…` by the first bytes, or undefined. */
export function imageType(bytes: Uint8Array): string | undefined {
  if (startsWith(bytes, [0x89, 0x50, 0x4e, 0x47])) return 'image/png';
  if (startsWith(bytes, [0xff, 0xd8, 0xff])) return 'image/jpeg';
  if (ascii(bytes, 0, 4) === 'GIF8') return 'image/gif';
  if (ascii(bytes, 0, 4) === 'RIFF' && ascii(bytes, 8, 12) === 'WEBP') return 'image/webp';
  if (ascii(bytes, 0, 2) === 'BM' && bytes.length > 26 && bytes[6] === 0 && bytes[7] === 0) return 'image/bmp';
  if (ascii(bytes, 0, 4) === 'II*\0' || ascii(bytes, 0, 4) === 'MM\0*') return 'image/tiff';
  if (ascii(bytes, 4, 8) === 'ftyp') {
    const brand = ascii(bytes, 8, 12);
    if (brand.startsWith('avi')) return 'image/avif';
    if (/^(?:hei|hev|mif|msf)/.test(brand)) return 'image/heic';
  }
  return undefined;
}

type Reader = (bytes: Uint8Array, view: DataView) => ImageSize | undefined;

const png: Reader = (bytes, view) =>
  imageType(bytes) === 'image/png' && ascii(bytes, 12, 16) === 'IHDR'
    ? { width: view.getUint32(16), height: view.getUint32(20) }
    : undefined;

const gif: Reader = (bytes, view) =>
  imageType(bytes) === 'image/gif' ? { width: view.getUint16(6, true), height: view.getUint16(8, true) } : undefined;

const bmp: Reader = (bytes, view) =>
  imageType(bytes) === 'image/bmp'
    ? { width: Math.abs(view.getInt32(18, true)), height: Math.abs(view.getInt32(22, true)) }
    : undefined;

const webp: Reader = (bytes, view) => {
  if (imageType(bytes) !== 'image/webp') return undefined;
  const form = ascii(bytes, 12, 16);
  if (form === 'VP8X') {
    const at = (offset: number): number => view.getUint16(offset, true) | (view.getUint8(offset + 2) << 16);
    return { width: at(24) + 1, height: at(27) + 1 };
  }
  if (form === 'VP8L') {
    const bits = view.getUint32(21, true);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
};

const jpeg: Reader = (bytes, view) => {
  if (imageType(bytes) !== 'image/jpeg') return undefined;
  let offset = 2;
  while (offset + 9 < bytes.length) {
    if (bytes[offset] !== 0xff) {
      offset += 1;
      continue;
    }
    const marker = view.getUint8(offset + 1);
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc)
      return { width: view.getUint16(offset + 7), height: view.getUint16(offset + 5) };
    const standsAlone = marker === 0xff || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    offset += standsAlone ? (marker === 0xff ? 1 : 2) : 2 + Math.max(2, view.getUint16(offset + 2));
  }
  return undefined;
};

const tiff: Reader = (bytes, view) => {
  if (imageType(bytes) !== 'image/tiff') return undefined;
  const little = bytes[0] === 0x49;
  const directory = view.getUint32(4, little);
  const entries = view.getUint16(directory, little);
  const size = { width: 0, height: 0 };
  for (let index = 0; index < entries; index++) {
    const entry = directory + 2 + index * 12;
    const tag = view.getUint16(entry, little);
    const value =
      view.getUint16(entry + 2, little) === 3 ? view.getUint16(entry + 8, little) : view.getUint32(entry + 8, little);
    if (tag === 256) size.width = value;
    if (tag === 257) size.height = value;
  }
  return size;
};

/** The largest `ispe` property of an AVIF or HEIC file. */
const isoMedia: Reader = (bytes, view) => {
  const type = imageType(bytes);
  if (type !== 'image/avif' && type !== 'image/heic') return undefined;
  let best: ImageSize | undefined;
  const end = Math.min(bytes.length, 1 << 20) - 16;
  for (let offset = 12; offset < end; offset++) {
    if (bytes[offset] !== 0x69 || ascii(bytes, offset, offset + 4) !== 'ispe') continue;
    const size = { width: view.getUint32(offset + 8), height: view.getUint32(offset + 12) };
    if (!best || size.width * size.height > best.width * best.height) best = size;
  }
  return best;
};

const svg: Reader = (bytes) => {
  const head = new TextDecoder().decode(bytes.subarray(0, 4096));
  const tag = /^[^<]*(?:<[?!][^>]*>[^<]*)*<svg\b([^>]*)>/i.exec(head)?.[1];
  if (tag === undefined) return undefined;
  const number = (name: string): number =>
    Number(new RegExp(`\\s${name}\\s*=\\s*["']\\s*([\\d.]+)(?:px)?\\s*["']`).exec(tag)?.[1]);
  const box =
    /\sviewBox\s*=\s*["']([^"']+)["']/
      .exec(tag)?.[1]
      ?.trim()
      .split(/[\s,]+/)
      .map(Number) ?? [];
  const width = number('width') || box[2] || 0;
  const height = number('height') || box[3] || 0;
  return Number.isFinite(width * height) ? { width: Math.round(width), height: Math.round(height) } : undefined;
};

function startsWith(bytes: Uint8Array, prefix: number[]): boolean {
  return prefix.every((byte, index) => bytes[index] === byte);
}

function ascii(bytes: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...bytes.subarray(from, to));
}
