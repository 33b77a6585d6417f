import type { Line } from './lines.ts';

type Run = { lines: Line[]; left: number; right: number; top: number; bottom: number };

const runsMax = 400;

/**
 * Sorts lines into reading order. Files draw most of their text in that order, so runs of lines that go down the page
 * stay together; a run above another one in the same column comes before it (after Breuel, 2003), and otherwise the
 * drawing order decides.
 */
export function orderLines(lines: Line[]): Line[] {
  const runs = splitRuns(lines);
  if (runs.length < 2 || runs.length > runsMax) return lines;
  const pending = new Set(runs);
  const ordered: Line[] = [];
  while (pending.size > 0) {
    const next =
      [...pending].find((run) => ![...pending].some((other) => other !== run && isAbove(other, run))) ??
      [...pending][0];
    if (!next) break;
    pending.delete(next);
    ordered.push(...next.lines);
  }
  return ordered;
}

/** A run ends where the drawing goes up, leaves its column or skips a part of the page. */
function splitRuns(lines: Line[]): Run[] {
  const runs: Run[] = [];
  for (const line of lines) {
    const run = runs.at(-1);
    const last = run?.lines.at(-1);
    const goesOn =
      last !== undefined &&
      line.baseline > last.baseline - last.size * 0.6 &&
      line.top - last.bottom < Math.max(line.size, last.size) * 2.2 &&
      line.right > (run?.left ?? 0) - line.size &&
      line.left < (run?.right ?? 0) + line.size * 3;
    if (run && goesOn) {
      run.lines.push(line);
      run.left = Math.min(run.left, line.left);
      run.right = Math.max(run.right, line.right);
      run.top = Math.min(run.top, line.top);
      run.bottom = Math.max(run.bottom, line.bottom);
    } else runs.push({ lines: [line], left: line.left, right: line.right, top: line.top, bottom: line.bottom });
  }
  return runs;
}

function isAbove(a: Run, b: Run): boolean {
  const overlap = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const needed = Math.min(a.right - a.left, b.right - b.left) * 0.2;
  return (
    overlap > Math.max(1, needed) &&
    (a.top + a.bottom) / 2 < b.top &&
    a.bottom <= b.top + (b.lines[0]?.size ?? 10) * 0.5
  );
}
