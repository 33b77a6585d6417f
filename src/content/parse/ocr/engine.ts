import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';
import { imageOrientation } from '../image-size.ts';
import { findLanguage, findOcrEngine, type OcrSettings } from '../pool/ocr-data.ts';
import { failed, unsupported } from '../types.ts';
import type { GreyImage } from './image.ts';

type Box = { x0: number; y0: number; x1: number; y1: number };
type Word = { bbox: Box; text: string; confidence: number };
export type OcrLine = {
  bbox: Box;
  baseline: Box;
  rowAttributes: { rowHeight: number; ascenders: number; descenders: number };
  words: Word[];
};

type Api = {
  Init(path: string, languages: string, mode: number): number;
  SetVariable(name: string, value: string): number;
  SetImageFile(orientation: number, angle: number, upscale: boolean): number;
  Recognize(monitor: null): number;
  GetJSONText(page: number): string;
  GetInputImage(): unknown;
  Clear(): void;
};
type Tesseract = {
  TessBaseAPI: new () => Api;
  FS: { writeFile(path: string, bytes: Uint8Array): void; unlink(path: string): void };
  getPointer(value: unknown): number;
};
type Memory = { readonly buffer: ArrayBuffer };
type WasmInstance = { exports: Record<string, unknown> };
declare const WebAssembly: {
  Memory: new () => Memory;
  instantiate(bytes: Uint8Array, imports: object): Promise<{ instance: WasmInstance; module: unknown }>;
};

/** Page segmentation modes of Tesseract: 3 finds columns and blocks, 6 reads lines through the whole width. */
const layouts = { page: '3', table: '6' };
/** Engine mode 1: the neural network, the only engine in this build. */
const neural = 1;
const inputFile = '/input';
const dataBytesMax = 256 * 1024 * 1024;

let loading: { languages: string; engine: Promise<TesseractEngine> } | undefined;

/** Loads the engine once for each set of languages. Throws ParseError if it is not installed. */
export function loadOcrEngine(settings: OcrSettings): Promise<TesseractEngine> {
  const languages = settings.languages.join('+');
  if (loading?.languages !== languages) loading = { languages, engine: createEngine(settings, languages) };
  return loading.engine;
}

async function createEngine(settings: OcrSettings, languages: string): Promise<TesseractEngine> {
  const program = findOcrEngine(settings);
  if (!program) throw unsupported('The text is a picture, and no OCR engine is installed.');
  const create = createRequire(import.meta.url)(program.programFile) as (options: object) => Promise<Tesseract>;
  const quiet = (): void => {};
  const started = Promise.withResolvers<WasmInstance>();
  const tesseract = await create({
    print: quiet,
    printErr: quiet,
    instantiateWasm(imports: object, use: (instance: WasmInstance, module: unknown) => void): void {
      WebAssembly.instantiate(readFileSync(program.wasmFile), imports).then(({ instance, module }) => {
        started.resolve(instance);
        use(instance, module);
      }, started.reject);
    },
  });
  const memory = Object.values((await started.promise).exports).find((one) => one instanceof WebAssembly.Memory);
  if (!memory) throw new Error('The OCR engine exports no memory.');
  for (const language of settings.languages) {
    const file = findLanguage(language, settings);
    if (file === undefined) throw unsupported(`The text is a picture, and no OCR data is installed for ${language}.`);
    tesseract.FS.writeFile(`/${language}.traineddata`, readLanguage(file));
  }
  const api = new tesseract.TessBaseAPI();
  if (api.Init('/', languages, neural) !== 0) throw new Error(`The OCR data of ${languages} cannot be read.`);
  for (const language of settings.languages) tesseract.FS.unlink(`/${language}.traineddata`);
  return new TesseractEngine(tesseract, api, memory);
}

function readLanguage(file: string): Uint8Array {
  const bytes = readFileSync(file);
  return file.endsWith('.gz') ? gunzipSync(bytes, { maxOutputLength: dataBytesMax }) : bytes;
}

export class TesseractEngine {
  readonly #tesseract: Tesseract;
  readonly #api: Api;
  readonly #memory: Memory;

  constructor(tesseract: Tesseract, api: Api, memory: Memory) {
    this.#tesseract = tesseract;
    this.#api = api;
    this.#memory = memory;
  }

  /** The lines of text in a picture, in reading order. */
  recognise(image: GreyImage, dotsPerInch: number, layout: keyof typeof layouts = 'page'): OcrLine[] {
    this.#api.SetVariable('tessedit_pageseg_mode', layouts[layout]);
    this.#setImage(encodePgm(image));
    this.#api.SetVariable('user_defined_dpi', String(dotsPerInch));
    try {
      if (this.#api.Recognize(null) !== 0) return [];
      const { blocks } = JSON.parse(this.#api.GetJSONText(0)) as Result;
      return blocks.flatMap((block) => block.paragraphs.flatMap((paragraph) => paragraph.lines));
    } finally {
      this.#api.Clear();
    }
  }

  /** Decodes a picture file of any format that the engine's libraries know, in grey and upright. Throws ParseError. */
  decode(file: Uint8Array): GreyImage {
    this.#setImage(file);
    try {
      return this.#readInput();
    } finally {
      this.#api.Clear();
    }
  }

  #setImage(file: Uint8Array): void {
    this.#tesseract.FS.writeFile(inputFile, file);
    const failure = this.#api.SetImageFile(imageOrientation(file), 0, false);
    this.#tesseract.FS.unlink(inputFile);
    if (failure !== 0) throw failed('The picture is damaged or truncated.');
  }

  /** Copies the picture out of Leptonica's `Pix`: width, height, depth, …, words per row at 16, pixels at 48. */
  #readInput(): GreyImage {
    const address = this.#tesseract.getPointer(this.#api.GetInputImage());
    if (address === 0) throw failed('The picture is damaged or truncated.');
    const heap = new Uint8Array(this.#memory.buffer);
    const view = new DataView(this.#memory.buffer);
    const [width, height, depth] = [0, 4, 8].map((at) => view.getUint32(address + at, true)) as [
      number,
      number,
      number,
    ];
    const rowBytes = view.getUint32(address + 16, true) * 4;
    const data = view.getUint32(address + 48, true);
    const pixels = new Uint8Array(width * height);
    // Each word of 32 bits has its first pixel in the highest bits.
    for (let y = 0; y < height; y++)
      for (let x = 0; x < width; x++) pixels[y * width + x] = greyAt(heap, data + y * rowBytes, x, depth);
    return { width, height, pixels };
  }
}

type Result = { blocks: { paragraphs: { lines: OcrLine[] }[] }[] };

function greyAt(heap: Uint8Array, row: number, x: number, depth: number): number {
  if (depth === 8) return heap[row + (x ^ 3)] ?? 0;
  if (depth === 1) return ((heap[row + ((x >> 3) ^ 3)] ?? 0) >> (7 - (x & 7))) & 1 ? 0 : 255;
  if (depth !== 32) throw failed('The picture has a colour depth that cannot be read.');
  const at = row + 4 * x;
  return 0.299 * (heap[at + 3] ?? 0) + 0.587 * (heap[at + 2] ?? 0) + 0.114 * (heap[at + 1] ?? 0);
}

/** Encodes a grey picture in Netpbm format. */
function encodePgm({ width, height, pixels }: GreyImage): Uint8Array {
  const header = new TextEncoder().encode(`P5\n${width} ${height}\n255\n`);
  const file = new Uint8Array(header.length + pixels.length);
  file.set(header);
  file.set(pixels, header.length);
  return file;
}
