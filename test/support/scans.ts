import { deflateSync } from 'node:zlib';
import type { GreyImage } from '../../src/content/parse/ocr/image.ts';
import { openPdf } from '../../src/content/parse/pdf/document.ts';
import { buildPdf } from '../../src/content/parse/sample-pdf.ts';
import { fixture, type SampleDocument } from './documents.ts';

const dotsPerInch = 200;
const pixelsMax = 12_000_000;

/** How scanning degrades a page. */
type Spoiling = {
  /** The page is turned by up to this many degrees to either side. */
  skewDegrees: number;
  /** The weight of each neighbour in a 3 x 3 blur. The pixel itself has weight 1. */
  blur: number;
  /** The standard deviation of the grain in grey levels (of 255). */
  grain: number;
  /** The share of pixels that are black or white specks. */
  specks: number;
};

export const noisy: Spoiling = { skewDegrees: 1.5, blur: 0.4, grain: 14, specks: 0.001 };

/** A PDF whose pages are pictures of another PDF's pages, as from a scanner. The same seed gives the same result. */
export async function makeScan(pdf: Uint8Array, spoiling: Spoiling | undefined, seed: number): Promise<Uint8Array> {
  const document = await openPdf(pdf);
  const pages: GreyImage[] = [];
  for (let index = 0; index < document.pageCount; index++) {
    const drawn = document.withPage(index, (page) => page.renderGrey(dotsPerInch, pixelsMax));
    if (drawn) pages.push(spoiling ? spoil(drawn.picture, spoiling, randomNumbers(seed + index)) : drawn.picture);
  }
  document.close();
  return bookOf(pages);
}

/** Draws a page with these drawing operations as a picture, or only its upper part if a height in points is given. */
export async function drawPicture(content: string, heightPoints = 792): Promise<GreyImage> {
  const document = await openPdf(buildPdf([content]));
  const drawn = document.withPage(0, (page) => page.renderGrey(dotsPerInch, pixelsMax));
  document.close();
  if (!drawn) throw new Error('The page cannot be drawn.');
  const { width, pixels } = drawn.picture;
  const height = Math.round((heightPoints * dotsPerInch) / 72);
  return { width, height, pixels: pixels.slice(0, width * height) };
}

/** A scanned page and pictures of text, for the fuzz run. */
export async function sampleScans(): Promise<SampleDocument[]> {
  const picture = await drawPicture('BT /F1 20 Tf 60 740 Td (Harbour report) Tj ET', 90);
  return [
    { filename: 'scan.pdf', bytes: bookOf([picture]) },
    ...['sample.jpg', 'sample.webp', 'sample.gif'].map((filename) => ({ filename, bytes: fixture(filename) })),
  ];
}

function spoil(image: GreyImage, { skewDegrees, blur, grain, specks }: Spoiling, random: () => number): GreyImage {
  const { width, height } = image;
  const turned = turn(image, (random() * 2 - 1) * skewDegrees);
  const pixels = blurred(blurred(turned, blur, 1), blur, width);
  for (let at = 0; at < pixels.length; at++) {
    // The sum of four uniform numbers is close enough to a normal distribution.
    const deviation = (random() + random() + random() + random() - 2) * Math.sqrt(3) * grain;
    const speck = random();
    const value = speck < specks / 2 ? 0 : speck < specks ? 255 : (pixels[at] ?? 0) * 0.86 + 14 + deviation;
    pixels[at] = Math.min(255, Math.max(0, value));
  }
  return { width, height, pixels };
}

function turn({ width, height, pixels }: GreyImage, degrees: number): Uint8Array {
  const out = new Uint8Array(pixels.length).fill(255);
  const [cosine, sine] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const [dx, dy] = [x - width / 2, y - height / 2];
      const [fromX, fromY] = [width / 2 + cosine * dx + sine * dy, height / 2 - sine * dx + cosine * dy];
      const [column, row] = [Math.floor(fromX), Math.floor(fromY)];
      if (column < 0 || row < 0 || column >= width - 1 || row >= height - 1) continue;
      const [right, down, at] = [fromX - column, fromY - row, row * width + column];
      const upper = (pixels[at] ?? 0) * (1 - right) + (pixels[at + 1] ?? 0) * right;
      const lower = (pixels[at + width] ?? 0) * (1 - right) + (pixels[at + width + 1] ?? 0) * right;
      out[y * width + x] = upper * (1 - down) + lower * down;
    }
  return out;
}

function blurred(pixels: Uint8Array, weight: number, step: number): Uint8Array {
  return pixels.map(
    (here, at) => (here + weight * ((pixels[at - step] ?? here) + (pixels[at + step] ?? here))) / (1 + 2 * weight),
  );
}

function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A PDF whose pages each are a picture, or draw their content with Helvetica as /F1. */
export function bookOf(pages: (GreyImage | string)[]): Uint8Array {
  const parts: Buffer[] = [Buffer.from('%PDF-1.4\n')];
  const offsets: number[] = [];
  let length = parts[0]?.length ?? 0;
  const add = (...more: Buffer[]): void => {
    for (const part of more) {
      parts.push(part);
      length += part.length;
    }
  };
  const object = (head: string, stream?: Buffer): void => {
    offsets.push(length);
    add(Buffer.from(`${offsets.length} 0 obj\n${head}\n`));
    if (stream) add(Buffer.from('stream\n'), stream, Buffer.from('\nendstream\n'));
    add(Buffer.from('endobj\n'));
  };
  // A picture on several pages is stored once.
  const pictures = [...new Set(pages)].filter((page) => typeof page !== 'string');
  const numberOf = (page: number): number => 4 + pictures.length + page * 2;
  object('<< /Type /Catalog /Pages 2 0 R >>');
  object(`<< /Type /Pages /Count ${pages.length} /Kids [${pages.map((_, at) => `${numberOf(at)} 0 R`).join(' ')}] >>`);
  object('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>');
  for (const { width, height, pixels } of pictures) {
    const data = deflateSync(pixels, { level: 1 });
    const kind = '/Type /XObject /Subtype /Image /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /FlateDecode';
    object(`<< ${kind} /Width ${width} /Height ${height} /Length ${data.length} >>`, data);
  }
  pages.forEach((page, index) => {
    const [wide, high] = typeof page === 'string' ? [612, 792] : sizeInPoints(page);
    const [resources, drawn] =
      typeof page === 'string'
        ? ['/Font << /F1 3 0 R >>', page]
        : [`/XObject << /I ${4 + pictures.indexOf(page)} 0 R >>`, `q ${wide} 0 0 ${high} 0 0 cm /I Do Q`];
    object(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${wide} ${high}] /Resources << ${resources} >> /Contents ${numberOf(index) + 1} 0 R >>`,
    );
    const content = Buffer.from(drawn);
    object(`<< /Length ${content.length} >>`, content);
  });
  const start = length;
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  add(Buffer.from(`xref\n0 ${offsets.length + 1}\n0000000000 65535 f \n${rows}`));
  add(Buffer.from(`trailer << /Size ${offsets.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`));
  return Buffer.concat(parts);
}

function sizeInPoints({ width, height }: GreyImage): [number, number] {
  return [(width * 72) / dotsPerInch, (height * 72) / dotsPerInch];
}
