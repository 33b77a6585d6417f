import type { Line } from './pdf-lines.ts';

const depthMax = 24;

/**
 * Lines in reading order. Most files draw their text in that order; only where the drawing order jumps up and down
 * within a column is the page cut into bands and columns by its white space instead.
 */
export function orderLines(lines: Line[]): Line[] {
  return isScrambled(lines) ? cut(lines, 0) : lines;
}

function isScrambled(lines: Line[]): boolean {
  let jumps = 0;
  for (let index = 1; index < lines.length; index++) {
    const [before, line] = [lines[index - 1], lines[index]];
    if (!before || !line) continue;
    const overlaps = Math.min(before.right, line.right) - Math.max(before.left, line.left) > 0;
    if (overlaps && line.bottom < before.top - before.size * 0.5) jumps += 1;
  }
  return jumps > Math.max(2, lines.length * 0.1);
}

/** Recursive XY-cut: a column gutter through the whole region first, else the widest band of white. */
function cut(lines: Line[], depth: number): Line[] {
  if (lines.length < 2 || depth > depthMax) return byPlace(lines);
  const size = lines[0]?.size ?? 10;
  const columns = parts(lines, (line) => [line.left, line.right], size * 1.5);
  if (columns.length > 1 && columns.every((column) => column.length > 1))
    return columns.flatMap((column) => cut(column, depth + 1));
  const bands = parts(lines, (line) => [line.top, line.bottom], size * 0.6);
  if (bands.length > 1) return bands.flatMap((band) => cut(band, depth + 1));
  return byPlace(lines);
}

/** Groups of lines with white of at least that width between them along one axis. */
function parts(lines: Line[], extent: (line: Line) => [number, number], gap: number): Line[][] {
  const sorted = [...lines].sort((a, b) => extent(a)[0] - extent(b)[0]);
  const groups: Line[][] = [];
  let end = Number.NEGATIVE_INFINITY;
  for (const line of sorted) {
    const [from, to] = extent(line);
    if (from > end + gap || groups.length === 0) groups.push([line]);
    else groups.at(-1)?.push(line);
    end = Math.max(end, to);
  }
  return groups;
}

function byPlace(lines: Line[]): Line[] {
  return [...lines].sort((a, b) =>
    Math.abs(a.baseline - b.baseline) < Math.min(a.size, b.size) * 0.4 ? a.left - b.left : a.baseline - b.baseline,
  );
}
