/** Encodes picture files for tests. */
import { crc32, deflateSync } from 'node:zlib';
import type { GreyImage } from '../../src/content/parse/ocr/image.ts';
import { encodePicture } from '../../src/content/picture/codecs.ts';
import type { RgbaImage } from '../../src/content/picture/shrink.ts';
import { pdf, type SampleDocument } from './documents.ts';

export function encodePng({ width, height, pixels }: GreyImage): Uint8Array {
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) rows.set(pixels.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const chunk = (type: string, data: Uint8Array): Buffer => {
    const body = Buffer.concat([Buffer.from(type), data]);
    return Buffer.concat([bigEndian(data.byteLength), body, bigEndian(crc32(body))]);
  };
  const header = Buffer.concat([bigEndian(width), bigEndian(height), Buffer.from([8, 0, 0, 0, 0])]);
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  return Buffer.concat([
    ...[signature, chunk('IHDR', header), chunk('IDAT', deflateSync(rows))],
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** A bitmap with 24 bits per pixel and rows from the bottom up. */
export function encodeBmp({ width, height, pixels }: GreyImage): Uint8Array {
  const rowBytes = Math.ceil((width * 3) / 4) * 4;
  const file = Buffer.alloc(54 + rowBytes * height);
  file.write('BM');
  file.writeUInt32LE(file.length, 2);
  file.writeUInt32LE(54, 10);
  file.writeUInt32LE(40, 14);
  file.writeInt32LE(width, 18);
  file.writeInt32LE(height, 22);
  file.writeUInt16LE(1, 26);
  file.writeUInt16LE(24, 28);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const at = 54 + (height - 1 - y) * rowBytes + x * 3;
      file.fill(pixels[y * width + x] ?? 0, at, at + 3);
    }
  return file;
}

/** A grey TIFF without compression, in one strip. */
export function encodeTiff({ width, height, pixels }: GreyImage): Uint8Array {
  const short = 3;
  const long = 4;
  const entries: [tag: number, type: number, value: number][] = [
    [256, long, width],
    [257, long, height],
    [258, short, 8],
    [259, short, 1],
    [262, short, 1],
    [273, long, 0],
    [277, short, 1],
    [278, long, height],
    [279, long, pixels.length],
  ];
  const start = 8 + 2 + entries.length * 12 + 4;
  const head = Buffer.alloc(start);
  head.write('II*\0', 'latin1');
  head.writeUInt32LE(8, 4);
  head.writeUInt16LE(entries.length, 8);
  entries.forEach(([tag, type, value], index) => {
    const at = 10 + index * 12;
    head.writeUInt16LE(tag, at);
    head.writeUInt16LE(type, at + 2);
    head.writeUInt32LE(1, at + 4);
    head.writeUInt32LE(tag === 273 ? start : value, at + 8);
  });
  return Buffer.concat([head, pixels]);
}

function bigEndian(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** A picture whose left half is red and whose right half is blue. */
export function halves(width: number, height: number, opacity = 255): RgbaImage {
  const data = new Uint8ClampedArray(width * height * 4);
  for (let i = 0; i < width * height; i++)
    data.set(i % width < width / 2 ? [255, 0, 0, opacity] : [0, 0, 255, opacity], i * 4);
  return { width, height, data };
}

/** A JPEG with Exif metadata: an orientation, and the name of a camera. */
export function withExif(jpeg: Uint8Array, orientation: number): Uint8Array {
  const camera = Buffer.from('Secret camera\0');
  const entries = Buffer.alloc(2 + 2 * 12 + 4);
  entries.writeUInt16BE(2, 0);
  entries.set([0x01, 0x10, 0, 2, 0, 0, 0, camera.length, 0, 0, 0, 38], 2);
  entries.set([0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0], 14);
  const exif = Buffer.concat([Buffer.from('Exif\0\0MM\0*\0\0\0\x08', 'latin1'), entries, camera]);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(exif.length + 2);
  return Buffer.concat([jpeg.subarray(0, 2), Buffer.from([0xff, 0xe1]), length, exif, jpeg.subarray(2)]);
}

/** A GIF of two frames of 2 by 2 pixels, the first red and the second blue. */
export const animatedGif = Buffer.from(
  '47494638396102000200f00000ff00000000ff21f90404000000002c000000000200020000020284510021f90404000000002c0000000002000200000202' +
    '8c53003b',
  'hex',
);

/** A GIF of 2 by 2 pixels with a frame that states a width and height of 40,000. */
export function gifOfLargeFrame(): Buffer {
  const gif = Buffer.from(animatedGif);
  const frame = gif.indexOf(0x2c);
  for (const at of [frame + 5, frame + 7]) gif.writeUInt16LE(40_000, at);
  return gif;
}

/** One file of each type from which small pictures are made. */
export async function samplePictures(): Promise<SampleDocument[]> {
  const source = halves(90, 60);
  const jpeg = await encodePicture(source, 'jpeg');
  return [
    { filename: 'picture.png', bytes: await encodePicture(source, 'png') },
    { filename: 'picture.jpg', bytes: jpeg },
    { filename: 'photo.jpg', bytes: withExif(jpeg, 6) },
    { filename: 'picture.webp', bytes: await encodePicture(source, 'webp') },
    { filename: 'picture.gif', bytes: animatedGif },
    { filename: 'page.pdf', bytes: pdf() },
  ];
}
