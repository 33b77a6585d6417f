/// <reference path="./omggif.d.ts" />
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { GifReader } from 'omggif';
import type { PictureFormat } from '../parse/types.ts';
import type { RgbaImage } from './shrink.ts';
import { noteCodecFailure } from './wear.ts';

/*
 * Codecs in WebAssembly. Their loaders are written for browsers, where they fetch their modules and create ImageData.
 * Here, each gets its compiled module when the first picture needs it.
 */

/** The kind of a picture file, detected from its first bytes. */
type PictureKind = 'png' | 'jpeg' | 'webp' | 'gif' | 'pdf';

export function pictureKind(bytes: Uint8Array): PictureKind | undefined {
  const head = Buffer.from(bytes.subarray(0, 1_024)).toString('latin1');
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'png';
  if (head.startsWith('\xff\xd8\xff')) return 'jpeg';
  if (head.startsWith('RIFF') && head.startsWith('WEBP', 8)) return 'webp';
  if (/^GIF8[79]a/.test(head)) return 'gif';
  return head.includes('%PDF-') ? 'pdf' : undefined;
}

declare const WebAssembly: { Module: new (bytes: Uint8Array) => object };

type Pixels = { data: Uint8ClampedArray; width: number; height: number };

/** The part of a browser's ImageData that the codecs use. */
class PlainImageData implements Pixels {
  readonly data: Uint8ClampedArray;
  readonly width: number;
  readonly height: number;

  constructor(data: Uint8ClampedArray, width: number, height: number) {
    this.data = data;
    this.width = width;
    this.height = height;
  }
}

type Decoder = { init(module: object): Promise<unknown>; default(bytes: ArrayBuffer): Promise<Pixels> };
type Encoder = {
  init(module: object): Promise<unknown>;
  default(pixels: Pixels, options?: object): Promise<ArrayBuffer>;
};

const require = createRequire(import.meta.url);
const loaded = new Map<string, Promise<unknown>>();

/** Loads a codec with its module, once. */
function load<T extends Decoder | Encoder>(script: string, wasm: string): Promise<T> {
  const found = loaded.get(script);
  if (found) return found as Promise<T>;
  const loading = (async () => {
    Object.assign(globalThis, { ImageData: PlainImageData });
    const codec = (await import(script)) as T;
    await codec.init(new WebAssembly.Module(await readFile(require.resolve(wasm))));
    return codec;
  })();
  loaded.set(script, loading);
  return loading;
}

const pngWasm = '@jsquash/png/codec/pkg/squoosh_png_bg.wasm';
const decoders = {
  png: () => load<Decoder>('@jsquash/png/decode.js', pngWasm),
  jpeg: () => load<Decoder>('@jsquash/jpeg/decode.js', '@jsquash/jpeg/codec/dec/mozjpeg_dec.wasm'),
  webp: () => load<Decoder>('@jsquash/webp/decode.js', '@jsquash/webp/codec/dec/webp_dec.wasm'),
};

/** The pixels of a picture or, for an animation, of its first frame. Throws for damaged files. */
export async function decodePicture(kind: Exclude<PictureKind, 'pdf'>, bytes: Uint8Array): Promise<RgbaImage> {
  if (kind === 'gif') return decodeGif(bytes);
  const codec = await decoders[kind]();
  const { buffer, byteOffset, byteLength } = bytes;
  const pixels = await run(() => codec.default(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer));
  return { width: pixels.width, height: pixels.height, data: pixels.data };
}

function decodeGif(bytes: Uint8Array): RgbaImage {
  const reader = new GifReader(Buffer.from(bytes));
  const { width, height } = reader;
  const data = new Uint8ClampedArray(width * height * 4);
  reader.decodeAndBlitFrameRGBA(0, data as unknown as Uint8Array);
  return { width, height, data };
}

const encoders: Record<PictureFormat, () => Promise<Encoder>> = {
  webp: () => load<Encoder>('@jsquash/webp/encode.js', '@jsquash/webp/codec/enc/webp_enc_simd.wasm'),
  jpeg: () => load<Encoder>('@jsquash/jpeg/encode.js', '@jsquash/jpeg/codec/enc/mozjpeg_enc.wasm'),
  png: () => load<Encoder>('@jsquash/png/encode.js', pngWasm),
};

const qualities: Record<PictureFormat, object> = {
  webp: { quality: 80, method: 4 },
  jpeg: { quality: 82 },
  png: {},
};

/** Writes a picture file with pixels only, without metadata. */
export async function encodePicture(picture: RgbaImage, format: PictureFormat): Promise<Uint8Array> {
  const codec = await encoders[format]();
  const { data, width, height } = format === 'jpeg' ? onWhite(picture) : picture;
  return new Uint8Array(await run(() => codec.default(new PlainImageData(data, width, height), qualities[format])));
}

async function run<T>(code: () => Promise<T>): Promise<T> {
  try {
    return await code();
  } catch (error) {
    noteCodecFailure();
    throw error;
  }
}

/** JPEG has no transparency. */
function onWhite({ width, height, data }: RgbaImage): RgbaImage {
  const opaque = new Uint8ClampedArray(data.length);
  for (let i = 0; i < data.length; i += 4) {
    const alpha = (data[i + 3] ?? 0) / 255;
    for (let channel = 0; channel < 3; channel++)
      opaque[i + channel] = (data[i + channel] ?? 0) * alpha + 255 * (1 - alpha);
    opaque[i + 3] = 255;
  }
  return { width, height, data: opaque };
}
