/** A picture with one byte per pixel: 0 is black, 255 white. */
export type GreyImage = { width: number; height: number; pixels: Uint8Array };

const skewDegreesMax = 5;
const skewDegreesMin = 0.1;
const skewSamplesMax = 40_000;
/** Noise below this level (standard deviation, in grey levels) does not disturb recognition, but smoothing it would. */
const noiseMin = 4;

/** A copy for recognition, with straight lines and without the grain of the scanner. */
export function prepareForRecognition(image: GreyImage): GreyImage {
  const noise = measureNoise(image);
  const smooth =
    noise < noiseMin ? { ...image, pixels: image.pixels.slice() } : smoothen(image, Math.min(1, noise / 12));
  const degrees = measureSkew(smooth);
  return Math.abs(degrees) < skewDegreesMin ? smooth : rotate(smooth, degrees);
}

/** Scales down to at most this many pixels. Each is the mean of the pixels that it replaces. */
export function scaleDown(image: GreyImage, pixelsMax: number): GreyImage {
  const factor = Math.sqrt((image.width * image.height) / pixelsMax);
  if (factor <= 1) return image;
  const width = Math.max(1, Math.floor(image.width / factor));
  const height = Math.max(1, Math.floor(image.height / factor));
  const pixels = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) {
    const [top, bottom] = [Math.floor(y * factor), Math.min(image.height, Math.ceil((y + 1) * factor))];
    for (let x = 0; x < width; x++) {
      const [left, right] = [Math.floor(x * factor), Math.min(image.width, Math.ceil((x + 1) * factor))];
      let sum = 0;
      for (let row = top; row < bottom; row++)
        for (let column = left; column < right; column++) sum += image.pixels[row * image.width + column] ?? 0;
      pixels[y * width + x] = sum / ((bottom - top) * (right - left));
    }
  }
  return { width, height, pixels };
}

/** Twice as wide and high, between the pixels in proportion to their distance. */
export function scaleUp(image: GreyImage): GreyImage {
  const { width, height, pixels } = image;
  const out = new Uint8Array(4 * pixels.length);
  for (let y = 0; y < 2 * height; y++) {
    const upper = Math.max(0, (y - 1) >> 1);
    const lower = Math.min(height - 1, upper + (y > 0 ? 1 : 0));
    const down = y % 2 === 0 ? 0.75 : 0.25;
    for (let x = 0; x < 2 * width; x++) {
      const left = Math.max(0, (x - 1) >> 1);
      const right = Math.min(width - 1, left + (x > 0 ? 1 : 0));
      const across = x % 2 === 0 ? 0.75 : 0.25;
      const a = (pixels[upper * width + left] ?? 0) * (1 - across) + (pixels[upper * width + right] ?? 0) * across;
      const b = (pixels[lower * width + left] ?? 0) * (1 - across) + (pixels[lower * width + right] ?? 0) * across;
      out[y * 2 * width + x] = a * (1 - down) + b * down + 0.5;
    }
  }
  return { width: 2 * width, height: 2 * height, pixels: out };
}

/** The grey level that best separates dark from light (Otsu, 1979). */
export function darkBelow({ pixels }: GreyImage): number {
  const counts = new Float64Array(256);
  for (const value of pixels) counts[value] = (counts[value] ?? 0) + 1;
  let total = 0;
  for (let value = 0; value < 256; value++) total += value * (counts[value] ?? 0);
  let [best, level, below, sumBelow] = [-1, 128, 0, 0];
  for (let value = 0; value < 256; value++) {
    below += counts[value] ?? 0;
    sumBelow += value * (counts[value] ?? 0);
    const above = pixels.length - below;
    if (below === 0 || above === 0) continue;
    const between = below * above * (sumBelow / below - (total - sumBelow) / above) ** 2;
    if (between > best) [best, level] = [between, value + 1];
  }
  return level;
}

/** The grey level of the paper: the median of the light pixels. */
export function paperLevel({ pixels }: GreyImage, dark: number): number {
  const counts = new Uint32Array(256);
  for (const value of pixels) if (value >= dark) counts[value] = (counts[value] ?? 0) + 1;
  const half = counts.reduce((sum, count) => sum + count, 0) / 2;
  let seen = 0;
  for (let value = 255; value > 0; value--) {
    seen += counts[value] ?? 0;
    if (seen >= half) return value;
  }
  return 255;
}

/** The standard deviation of the grain, from neighbouring pixels in the light parts of the page. */
function measureNoise(image: GreyImage): number {
  const { pixels, width } = image;
  const dark = darkBelow(image);
  const counts = new Uint32Array(256);
  let samples = 0;
  for (let at = 0; at + 1 < pixels.length; at += 7) {
    const [here, next] = [pixels[at] ?? 0, pixels[at + 1] ?? 0];
    if (here < dark || next < dark || (at + 1) % width === 0) continue;
    counts[Math.abs(here - next)] = (counts[Math.abs(here - next)] ?? 0) + 1;
    samples += 1;
  }
  let seen = 0;
  for (let difference = 0; difference < 256; difference++) {
    seen += counts[difference] ?? 0;
    if (seen > samples / 2) return difference / (0.6745 * Math.SQRT2);
  }
  return 0;
}

/** Blends each pixel, with weight 1, with the neighbours on either side, each with weight `strength`. */
function smoothen({ width, height, pixels }: GreyImage, strength: number): GreyImage {
  const rows = new Uint8Array(pixels.length);
  const out = new Uint8Array(pixels.length);
  const scale = 1 / (1 + 2 * strength);
  const blend = (from: Uint8Array, to: Uint8Array, step: number): void => {
    for (let at = 0; at < from.length; at++) {
      const here = from[at] ?? 0;
      to[at] = (here + strength * ((from[at - step] ?? here) + (from[at + step] ?? here))) * scale + 0.5;
    }
  };
  blend(pixels, rows, 1);
  blend(rows, out, width);
  return { width, height, pixels: out };
}

/**
 * The angle of the text lines in degrees: the one at which the rows' numbers of dark pixels differ most.
 * Zero if no angle is clearly better.
 */
function measureSkew(image: GreyImage): number {
  const points = darkPoints(image);
  if (points.length < 1_000) return 0;
  const score = (degrees: number): number => unevenness(points, Math.tan((degrees * Math.PI) / 180), image);
  let best = 0;
  let bestScore = score(0) * 1.02;
  const search = (from: number, to: number, step: number): void => {
    for (let degrees = from; degrees <= to + 1e-9; degrees += step) {
      const value = score(degrees);
      if (value > bestScore) [best, bestScore] = [degrees, value];
    }
  };
  search(-skewDegreesMax, skewDegreesMax, 0.5);
  search(best - 0.4, best + 0.4, 0.1);
  search(best - 0.08, best + 0.08, 0.02);
  return best;
}

/** The coordinates of dark pixels above a light one: x, y, x, y, … */
function darkPoints(image: GreyImage): Int32Array {
  const { width, height, pixels } = image;
  const dark = darkBelow(image);
  let count = 0;
  const isEdge = (at: number): boolean => (pixels[at] ?? 0) < dark && (pixels[at + width] ?? 0) >= dark;
  const end = width * (height - 1);
  for (let at = 0; at < end; at += 3) if (isEdge(at)) count += 1;
  const step = Math.max(1, Math.floor(count / skewSamplesMax));
  const points = new Int32Array(2 * Math.ceil(count / step));
  let [seen, kept] = [0, 0];
  for (let at = 0; at < end; at += 3) {
    if (!isEdge(at)) continue;
    if (seen++ % step !== 0) continue;
    points[kept++] = at % width;
    points[kept++] = Math.floor(at / width);
  }
  return points;
}

function unevenness(points: Int32Array, slope: number, { width, height }: GreyImage): number {
  const shift = Math.ceil(Math.abs(slope) * width);
  const rows = new Uint32Array(height + 2 * shift + 1);
  for (let at = 0; at < points.length; at += 2) {
    const row = Math.round((points[at + 1] ?? 0) - slope * (points[at] ?? 0)) + shift;
    rows[row] = (rows[row] ?? 0) + 1;
  }
  let sum = 0;
  for (const count of rows) sum += count * count;
  return sum;
}

/** Turns the picture so that a line at this angle becomes level. */
function rotate({ width, height, pixels }: GreyImage, degrees: number): GreyImage {
  const out = new Uint8Array(pixels.length).fill(255);
  const [cosine, sine] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  const [middleX, middleY] = [width / 2, height / 2];
  for (let y = 0; y < height; y++) {
    let fromX = middleX - cosine * middleX - sine * (y - middleY);
    let fromY = middleY - sine * middleX + cosine * (y - middleY);
    for (let x = 0; x < width; x++, fromX += cosine, fromY += sine) {
      const [column, row] = [Math.floor(fromX), Math.floor(fromY)];
      if (column < 0 || row < 0 || column >= width - 1 || row >= height - 1) continue;
      const [right, down] = [fromX - column, fromY - row];
      const at = row * width + column;
      const upper = (pixels[at] ?? 0) * (1 - right) + (pixels[at + 1] ?? 0) * right;
      const lower = (pixels[at + width] ?? 0) * (1 - right) + (pixels[at + width + 1] ?? 0) * right;
      out[y * width + x] = upper * (1 - down) + lower * down;
    }
  }
  return { width, height, pixels: out };
}
