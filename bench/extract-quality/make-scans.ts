import { deflateSync } from 'node:zlib';
import type { GreyImage } from '../../src/content/parse/ocr/image.ts';
import { openPdf } from '../../src/content/parse/pdf/document.ts';

export const dotsPerInch = 200;
const pixelsMax = 12_000_000;

/** How a page is spoiled on its way through a scanner. */
export type Spoiling = {
  /** Turned by up to this many degrees to either side. */
  skewDegrees: number;
  /** Weight of each neighbour in a 3 x 3 blur; the pixel itself has 1. */
  blur: number;
  /** Standard deviation of the grain in grey levels of 255. */
  grain: number;
  /** Share of pixels that are black or white specks. */
  specks: number;
};

export const noisy: Spoiling = { skewDegrees: 1.5, blur: 0.4, grain: 14, specks: 0.001 };

/** A PDF whose pages are pictures of the given one's, as a scanner makes them. The same for the same seed. */
export async function makeScan(pdf: Uint8Array, spoiling: Spoiling | undefined, seed: number): Promise<Uint8Array> {
  const document = await openPdf(pdf);
  const pages: GreyImage[] = [];
  for (let index = 0; index < document.pageCount; index++) {
    const drawn = document.withPage(index, (page) => page.renderGrey(dotsPerInch, pixelsMax));
    if (drawn) pages.push(spoiling ? spoil(drawn.picture, spoiling, randomNumbers(seed + index)) : drawn.picture);
  }
  document.close();
  return pictureBook(pages);
}

function spoil(image: GreyImage, { skewDegrees, blur, grain, specks }: Spoiling, random: () => number): GreyImage {
  const { width, height } = image;
  const turned = turn(image, (random() * 2 - 1) * skewDegrees);
  const pixels = blurred(blurred(turned, blur, 1), blur, width);
  for (let at = 0; at < pixels.length; at++) {
    // The sum of four even numbers is near enough to a normal one.
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

/** A PDF with a picture on each page. */
function pictureBook(pages: GreyImage[]): Uint8Array {
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
  const kids = pages.map((_, index) => `${3 + index * 3} 0 R`).join(' ');
  object('<< /Type /Catalog /Pages 2 0 R >>');
  object(`<< /Type /Pages /Count ${pages.length} /Kids [${kids}] >>`);
  pages.forEach(({ width, height, pixels }, index) => {
    const [wide, high] = [(width * 72) / dotsPerInch, (height * 72) / dotsPerInch];
    const number = 3 + index * 3;
    const resources = `/Resources << /XObject << /I ${number + 2} 0 R >> >>`;
    object(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${wide} ${high}] ${resources} /Contents ${number + 1} 0 R >>`,
    );
    const content = Buffer.from(`q ${wide} 0 0 ${high} 0 0 cm /I Do Q`);
    object(`<< /Length ${content.length} >>`, content);
    const data = deflateSync(pixels, { level: 1 });
    const kind = '/Type /XObject /Subtype /Image /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /FlateDecode';
    object(`<< ${kind} /Width ${width} /Height ${height} /Length ${data.length} >>`, data);
  });
  const start = length;
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  add(Buffer.from(`xref\n0 ${offsets.length + 1}\n0000000000 65535 f \n${rows}`));
  add(Buffer.from(`trailer << /Size ${offsets.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`));
  return Buffer.concat(parts);
}
