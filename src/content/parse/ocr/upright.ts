import type { TesseractEngine } from './engine.ts';
import { darkBelow, type GreyImage, scaleDown } from './image.ts';

/**
 * Where lines of text go up or down the page, its columns of pixels differ more than its rows by this factor: 6 or more on
 * turned pages, 2 at most on receipts, whose prices are in columns.
 */
const uprightLinesMin = 3;
/** Enough pixels to tell rows from columns. */
const measuredPixelsMax = 1_000_000;
/** Rows are compared within strips of the page, because pages are crooked. */
const strips = 12;
/** The height of the sample that is recognised in each direction, as a share of the page's. */
const sampleShare = 0.12;
const sampleHeightMin = 60;
const sampleCharactersMin = 8;

/** The picture turned by a quarter if its lines of text go up or down and a sample is read better that way. */
export function levelLines(engine: TesseractEngine, image: GreyImage, dotsPerInch: number): GreyImage {
  if (!hasUprightLines(scaleDown(image, measuredPixelsMax))) return image;
  const directions = [image, turnQuarter(image), turnHalf(turnQuarter(image))];
  const scores = directions.map((one) => legibility(engine, one, dotsPerInch));
  return directions[scores.indexOf(Math.max(...scores))] ?? image;
}

/** The picture turned by half if a sample is read better that way, otherwise undefined. */
export function standUp(engine: TesseractEngine, image: GreyImage, dotsPerInch: number): GreyImage | undefined {
  const turned = turnHalf(image);
  return legibility(engine, turned, dotsPerInch) > legibility(engine, image, dotsPerInch) ? turned : undefined;
}

/** The engine's mean confidence, from 0 to 100, in the characters of the part of a picture with the most edges. */
function legibility(engine: TesseractEngine, { width, height, pixels }: GreyImage, dotsPerInch: number): number {
  const rows = Math.max(Math.min(height, sampleHeightMin), Math.ceil(height * sampleShare));
  const top = busiestRows({ width, height, pixels }, rows);
  const sample = { width, height: rows, pixels: pixels.slice(top * width, (top + rows) * width) };
  const words = engine.recognise(sample, dotsPerInch, 'table').flatMap((line) => line.words);
  const characters = words.reduce((sum, { text }) => sum + text.length, 0);
  const certain = words.reduce((sum, { text, confidence }) => sum + confidence * text.length, 0);
  return characters < sampleCharactersMin ? 0 : certain / characters;
}

/** The first of so many rows with the most changes between light and dark. */
function busiestRows(image: GreyImage, count: number): number {
  const { width, height, pixels } = image;
  const dark = darkBelow(image);
  const changes = new Float64Array(height);
  for (let y = 0; y < height; y++)
    for (let at = y * width + 1; at < (y + 1) * width; at += 2)
      if ((pixels[at] ?? 0) < dark !== (pixels[at - 1] ?? 0) < dark) changes[y] = (changes[y] ?? 0) + 1;
  let [sum, most, top] = [0, -1, 0];
  changes.forEach((own, y) => {
    sum += own - (changes[y - count] ?? 0);
    if (y >= count - 1 && sum > most) [most, top] = [sum, y - count + 1];
  });
  return top;
}

function hasUprightLines(image: GreyImage): boolean {
  const dark = darkBelow(image);
  return unevenness(turnQuarter(image), dark) > unevenness(image, dark) * uprightLinesMin;
}

/** How much the number of dark pixels changes from one group of four rows to the next, for each dark pixel. */
function unevenness({ width, height, pixels }: GreyImage, dark: number): number {
  const strip = Math.ceil(width / strips);
  let [changes, all] = [0, 0];
  for (let from = 0; from < width; from += strip) {
    const counts = new Float64Array(height);
    for (let y = 0; y < height; y++)
      for (let at = y * width + from; at < y * width + Math.min(width, from + strip); at++)
        if ((pixels[at] ?? 0) < dark) counts[y] = (counts[y] ?? 0) + 1;
    for (let y = 4; y < height; y++) changes += ((counts[y] ?? 0) - (counts[y - 4] ?? 0)) ** 2;
    all += counts.reduce((sum, count) => sum + count, 0);
  }
  return changes / Math.max(1, all);
}

/** Turns a picture clockwise by a quarter. */
function turnQuarter({ width, height, pixels }: GreyImage): GreyImage {
  const turned = new Uint8Array(pixels.length);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) turned[x * height + height - 1 - y] = pixels[y * width + x] ?? 0;
  return { width: height, height: width, pixels: turned };
}

function turnHalf(image: GreyImage): GreyImage {
  return { ...image, pixels: image.pixels.toReversed() };
}
