import { joinSegments, type Line } from './lines.ts';

const rowsMin = 8;
const sideCharactersMin = 22;

/**
 * Some programs, OCR above all, draw a two-column page row by row, so that each line contains a piece of both columns.
 * Cuts such lines at the gutter and returns the left column first, then the right. A line across both ends both columns.
 */
export function splitColumns(lines: Line[]): Line[] {
  const gutter = findGutter(lines);
  if (gutter === undefined) return lines;
  const out: Line[] = [];
  let left: Line[] = [];
  let right: Line[] = [];
  const flush = (): void => {
    out.push(...left, ...right);
    left = [];
    right = [];
  };
  for (const line of lines) {
    const before = line.segments.filter((segment) => segment.right <= gutter);
    const after = line.segments.filter((segment) => segment.left >= gutter);
    if (before.length + after.length < line.segments.length) {
      flush();
      out.push(line);
      continue;
    }
    if (before.length > 0) left.push(joinSegments(before));
    if (after.length > 0) right.push(joinSegments(after));
  }
  flush();
  return out;
}

/** The position of the gutter between two columns of running text; undefined when the page has none. */
function findGutter(lines: Line[]): number | undefined {
  const from = Math.min(...lines.map((line) => line.left));
  const width = Math.max(...lines.map((line) => line.right)) - from;
  const rows = lines.filter((line) => line.segments.length === 2);
  if (rows.length < rowsMin || rows.length < lines.length * 0.4) return undefined;
  const middles = rows
    .map((row) => ((row.segments[0]?.right ?? 0) + (row.segments[1]?.left ?? 0)) / 2)
    .filter((x) => x > from + width * 0.3 && x < from + width * 0.7)
    .sort((a, b) => a - b);
  const gutter = middles[Math.floor(middles.length / 2)];
  if (gutter === undefined) return undefined;
  const parted = rows.filter((row) => (row.segments[0]?.right ?? 0) < gutter && (row.segments[1]?.left ?? 0) > gutter);
  if (parted.length < rowsMin || parted.length < rows.length * 0.8) return undefined;
  return [0, 1].every((side) => isRunningText(parted.map((row) => row.segments[side]))) ? gutter : undefined;
}

/** Lines that fill their column and continue in the next one, as in prose but not in table cells. */
function isRunningText(side: (Line['segments'][number] | undefined)[]): boolean {
  const pieces = side.filter((piece) => piece !== undefined);
  const edge = Math.max(...pieces.map((piece) => piece.right));
  const start = Math.min(...pieces.map((piece) => piece.left));
  const full = pieces.filter((piece) => piece.right > edge - (edge - start) * 0.15).length;
  const ended = pieces.filter((piece) => /[.!?:;]$/.test(piece.text)).length;
  const length = pieces.reduce((sum, piece) => sum + piece.text.length, 0) / Math.max(1, pieces.length);
  return length >= sideCharactersMin && full >= pieces.length * 0.6 && ended <= pieces.length * 0.35;
}
