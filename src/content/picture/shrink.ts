/** Pixels of four bytes: red, green, blue and opacity. */
export type RgbaImage = { width: number; height: number; data: Uint8ClampedArray };

/**
 * Makes a smaller copy: each pixel is the average of the area that it covers, weighted by opacity. Works row by row,
 * so it needs no second picture of the original size.
 */
export function shrink(picture: RgbaImage, width: number, height: number): RgbaImage {
  if (width >= picture.width && height >= picture.height) return picture;
  const data = new Uint8ClampedArray(width * height * 4);
  const sums = new Float64Array(width * 4);
  const row = new Float64Array(width * 4);
  const step = picture.height / height;
  for (let y = 0; y < height; y++) {
    sums.fill(0);
    const [top, bottom] = [y * step, (y + 1) * step];
    for (let from = Math.floor(top); from < Math.min(picture.height, Math.ceil(bottom)); from++) {
      const share = Math.min(bottom, from + 1) - Math.max(top, from);
      shrinkRow(picture, from, width, row);
      for (let i = 0; i < row.length; i++) sums[i] = (sums[i] ?? 0) + (row[i] ?? 0) * share;
    }
    writeRow(sums, data, y * width * 4, (picture.width / width) * step);
  }
  return { width, height, data };
}

/** The sums of one row: colours times opacity, and opacity. */
function shrinkRow({ width: sourceWidth, data }: RgbaImage, y: number, width: number, row: Float64Array): void {
  const step = sourceWidth / width;
  const start = y * sourceWidth * 4;
  for (let x = 0; x < width; x++) {
    const [left, right] = [x * step, (x + 1) * step];
    let [red, green, blue, opacity] = [0, 0, 0, 0];
    for (let from = Math.floor(left); from < Math.min(sourceWidth, Math.ceil(right)); from++) {
      const at = start + from * 4;
      const weight = (data[at + 3] ?? 0) * (Math.min(right, from + 1) - Math.max(left, from));
      red += (data[at] ?? 0) * weight;
      green += (data[at + 1] ?? 0) * weight;
      blue += (data[at + 2] ?? 0) * weight;
      opacity += weight;
    }
    row[x * 4] = red;
    row[x * 4 + 1] = green;
    row[x * 4 + 2] = blue;
    row[x * 4 + 3] = opacity;
  }
}

function writeRow(sums: Float64Array, data: Uint8ClampedArray, start: number, area: number): void {
  for (let i = 0; i < sums.length; i += 4) {
    const opacity = sums[i + 3] ?? 0;
    if (opacity === 0) continue;
    for (let channel = 0; channel < 3; channel++) data[start + i + channel] = (sums[i + channel] ?? 0) / opacity;
    data[start + i + 3] = opacity / area;
  }
}

/** Turns a picture upright. `orientation` is the Exif value, from 1 to 8. */
export function turnUpright(picture: RgbaImage, orientation: number): RgbaImage {
  if (orientation < 2 || orientation > 8) return picture;
  const { width: w, height: h } = picture;
  const turned = orientation >= 5;
  const [width, height] = turned ? [h, w] : [w, h];
  const from = new Uint32Array(picture.data.buffer, picture.data.byteOffset, w * h);
  const to = new Uint32Array(w * h);
  const source = sourceOf[orientation - 1] ?? ((x: number, y: number) => [x, y]);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const [sourceX, sourceY] = source(x, y, w, h);
      to[y * width + x] = from[(sourceY ?? 0) * w + (sourceX ?? 0)] ?? 0;
    }
  return { width, height, data: new Uint8ClampedArray(to.buffer) };
}

/** Where a pixel of the upright picture is in the stored picture of this width and height. */
const sourceOf: ((x: number, y: number, w: number, h: number) => [number, number])[] = [
  (x, y) => [x, y],
  (x, y, w) => [w - 1 - x, y],
  (x, y, w, h) => [w - 1 - x, h - 1 - y],
  (x, y, _w, h) => [x, h - 1 - y],
  (x, y) => [y, x],
  (x, y, _w, h) => [y, h - 1 - x],
  (x, y, w, h) => [w - 1 - y, h - 1 - x],
  (x, y, w) => [w - 1 - y, x],
];
