import { darkBelow, type GreyImage } from './image.ts';

/** The level of paper is measured in this many squares across the longer side. */
const squaresAcross = 48;
/** Paper in the shade is at least this share as light as the lightest. What is darker is no paper. */
const shadeMin = 0.3;
/** Paper whose level differs by less is evenly lit. */
const evenMin = 0.9;
/** Light text is lighter than its ground by this factor. */
const contrastMin = 1.4;
/** Squares of one ground differ by less than this share. */
const groundShare = 0.12;

type Greys = { dark: number; ground: number; light: number };
type Squares = { side: number; columns: number; rows: number };

/** Levels out shadows: each pixel is divided by the level of the paper around it. Evenly lit pictures stay as they are. */
export function evenLight(image: GreyImage): GreyImage {
  const { width, height, pixels } = image;
  const side = Math.max(8, Math.ceil(Math.max(width, height) / squaresAcross));
  const squares = { side, columns: Math.ceil(width / side), rows: Math.ceil(height / side) };
  const { levels, lightest } = paperLevels(image, squares);
  // Where the shade covers nearly all of the page, the rest is lighter than this level.
  if (levels.every((level) => level >= lightest * evenMin && level <= lightest / evenMin)) return image;
  const { columns, rows } = squares;
  const out = new Uint8Array(pixels.length);
  for (let y = 0; y < height; y++) {
    const v = Math.min(rows - 1, Math.max(0, (y + 0.5) / side - 0.5));
    const [upper, down] = [Math.floor(v) * columns, v % 1];
    const lower = Math.min(rows - 1, Math.floor(v) + 1) * columns;
    for (let x = 0; x < width; x++) {
      const u = Math.min(columns - 1, Math.max(0, (x + 0.5) / side - 0.5));
      const [left, right] = [Math.floor(u), Math.min(columns - 1, Math.floor(u) + 1)];
      const across = u % 1;
      const above = (levels[upper + left] ?? 1) * (1 - across) + (levels[upper + right] ?? 1) * across;
      const below = (levels[lower + left] ?? 1) * (1 - across) + (levels[lower + right] ?? 1) * across;
      out[y * width + x] = Math.min(
        255,
        ((pixels[y * width + x] ?? 0) * lightest) / (above * (1 - down) + below * down),
      );
    }
  }
  return { width, height, pixels: out };
}

/** The level of the paper in each square, and the lightest. Dark print, and what is no paper, has the lightest one, too. */
function paperLevels(image: GreyImage, squares: Squares): { levels: Float64Array; lightest: number } {
  const { side, columns, rows } = squares;
  const grounds = new Float64Array(columns * rows);
  const reversed: number[] = [];
  const hasText = new Uint8Array(columns * rows);
  for (let at = 0; at < grounds.length; at++) {
    const { dark, ground, light } = greysOf(image, (at % columns) * side, Math.floor(at / columns) * side, side);
    grounds[at] = ground;
    if (light > ground * contrastMin + 10) reversed.push(at);
    else if (dark < ground / contrastMin - 10) hasText[at] = 1;
  }
  const lightest = grounds.toSorted()[Math.floor(grounds.length * 0.9)] ?? 255;
  const isPaper = grounds.map((ground) => (ground >= lightest * shadeMin ? 1 : 0));
  // Squares of the same dark ground beside light text belong to it, although they have no text.
  for (let at = reversed.pop(); at !== undefined; at = reversed.pop()) {
    isPaper[at] = 0;
    const ground = grounds[at] ?? 0;
    for (const next of neighboursOf(at, squares))
      if (isPaper[next] === 1 && hasText[next] === 0 && Math.abs((grounds[next] ?? 0) - ground) < ground * groundShare)
        reversed.push(next);
  }
  const levels = closing(
    grounds.map((ground, at) => (isPaper[at] === 1 ? ground : 0)),
    squares,
  );
  return { levels: levels.map((level) => (level === 0 ? lightest : level)), lightest };
}

/** The grey levels of a square: of its darkest and lightest pixels, without specks, and of half of them. */
function greysOf({ width, height, pixels }: GreyImage, left: number, top: number, side: number): Greys {
  const counts = new Uint32Array(256);
  let all = 0;
  for (let y = top; y < Math.min(height, top + side); y += 2)
    for (let x = left; x < Math.min(width, left + side); x += 2) {
      const value = pixels[y * width + x] ?? 0;
      counts[value] = (counts[value] ?? 0) + 1;
      all += 1;
    }
  const levelAt = (share: number): number => {
    let seen = 0;
    for (let value = 0; value < 256; value++) {
      seen += counts[value] ?? 0;
      if (seen > all * share) return value;
    }
    return 255;
  };
  return { dark: levelAt(0.02), ground: levelAt(0.5), light: levelAt(0.98) };
}

function* neighboursOf(at: number, { columns, rows }: Squares): Generator<number> {
  const [column, row] = [at % columns, Math.floor(at / columns)];
  for (let y = Math.max(0, row - 1); y <= Math.min(rows - 1, row + 1); y++)
    for (let x = Math.max(0, column - 1); x <= Math.min(columns - 1, column + 1); x++) yield y * columns + x;
}

/** Small gaps in the paper get the level around them: the lightest of nine squares, then the darkest of nine. */
function closing(levels: Float64Array, squares: Squares): Float64Array {
  const over = (from: Float64Array, choose: (...values: number[]) => number): Float64Array =>
    from.map((_, at) => choose(...Array.from(neighboursOf(at, squares), (one) => from[one] ?? 0)));
  return over(over(levels, Math.max), Math.min);
}

/** The picture as a negative if most of it is dark, as screens in dark mode are. */
export function darkOnLight(image: GreyImage): GreyImage {
  const dark = darkBelow(image);
  let count = 0;
  for (const value of image.pixels) if (value < dark) count += 1;
  if (count <= image.pixels.length / 2) return image;
  return { ...image, pixels: image.pixels.map((value) => 255 - value) };
}
