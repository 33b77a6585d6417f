/** A line of a comparison: what both texts have, or only one of them. */
type ComparedLine = { type: 'same' | 'removed' | 'added'; text: string };

/** Lines that differ, with those around them. Lines are counted from 1. */
type Hunk = { old_start: number; new_start: number; lines: ComparedLine[] };

export type Comparison = {
  removed_lines: number;
  added_lines: number;
  hunks: Hunk[];
  /** Whether there are more differences than fit into a response. */
  truncated: boolean;
};

const contextLines = 3;
const hunkLinesMax = 5_000;
const hunkCharactersMax = 512 * 1024;
/** Beyond this many differences between two common lines, all lines between them count as changed. */
const editsMax = 500;
/** The work of one comparison: beyond it, lines between common ones count as changed. */
const stepsMax = 20_000_000;

/**
 * Compares two texts line by line. Lines that occur once in both divide the texts; between them, the shortest list of
 * changes is searched for within bounds (Myers, "An O(ND) Difference Algorithm and Its Variations").
 */
export function compareLines(before: string, after: string): Comparison {
  const old = splitLines(before);
  const now = splitLines(after);
  const { removed, added } = markChanges(old, now);
  return {
    removed_lines: count(removed),
    added_lines: count(added),
    ...writeHunks(old, now, removed, added),
  };
}

function splitLines(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function count(marks: Uint8Array): number {
  return marks.reduce((sum, mark) => sum + mark, 0);
}

type Range = { oldStart: number; oldEnd: number; newStart: number; newEnd: number };

/** Marks the lines that only one of the texts has. */
function markChanges(old: readonly string[], now: readonly string[]) {
  const numbers = new Map<string, number>();
  const numberOf = (line: string): number => {
    const known = numbers.get(line) ?? numbers.size;
    numbers.set(line, known);
    return known;
  };
  const a = Int32Array.from(old, numberOf);
  const b = Int32Array.from(now, numberOf);
  const removed = new Uint8Array(a.length);
  const added = new Uint8Array(b.length);
  const work = { steps: stepsMax };
  const whole = trim(a, b, { oldStart: 0, oldEnd: a.length, newStart: 0, newEnd: b.length });
  let from = { old: whole.oldStart, new: whole.newStart };
  for (const anchor of [...findAnchors(a, b, whole), { old: whole.oldEnd, new: whole.newEnd }]) {
    const gap = trim(a, b, { oldStart: from.old, oldEnd: anchor.old, newStart: from.new, newEnd: anchor.new });
    if (!markShortest(a, b, gap, removed, added, work)) {
      removed.fill(1, gap.oldStart, gap.oldEnd);
      added.fill(1, gap.newStart, gap.newEnd);
    }
    from = { old: anchor.old + 1, new: anchor.new + 1 };
  }
  return { removed, added };
}

/** Leaves out the lines that both begin and end with. */
function trim(a: Int32Array, b: Int32Array, range: Range): Range {
  let { oldStart, oldEnd, newStart, newEnd } = range;
  while (oldStart < oldEnd && newStart < newEnd && a[oldStart] === b[newStart]) {
    oldStart += 1;
    newStart += 1;
  }
  while (oldStart < oldEnd && newStart < newEnd && a[oldEnd - 1] === b[newEnd - 1]) {
    oldEnd -= 1;
    newEnd -= 1;
  }
  return { oldStart, oldEnd, newStart, newEnd };
}

type Anchor = { old: number; new: number };

/** Lines that occur once in both, as many of them as are in the same order. */
function findAnchors(a: Int32Array, b: Int32Array, { oldStart, oldEnd, newStart, newEnd }: Range): Anchor[] {
  const places = new Map<number, { old: number; new: number; times: number; timesNew: number }>();
  for (let i = oldStart; i < oldEnd; i++) {
    const line = a[i] ?? 0;
    const place = places.get(line);
    if (place) place.times += 1;
    else places.set(line, { old: i, new: -1, times: 1, timesNew: 0 });
  }
  for (let j = newStart; j < newEnd; j++) {
    const place = places.get(b[j] ?? 0);
    if (place === undefined) continue;
    place.new = j;
    place.timesNew += 1;
  }
  const unique = [...places.values()].filter(({ times, timesNew }) => times === 1 && timesNew === 1);
  return longestAscending(unique);
}

/** The longest subsequence whose places in the new text ascend; the places in the old one already do. */
function longestAscending(anchors: readonly Anchor[]): Anchor[] {
  const ends: number[] = [];
  const before = new Int32Array(anchors.length);
  for (const [i, anchor] of anchors.entries()) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((anchors[ends[middle] ?? 0]?.new ?? 0) < anchor.new) low = middle + 1;
      else high = middle;
    }
    before[i] = low === 0 ? -1 : (ends[low - 1] ?? -1);
    ends[low] = i;
  }
  const chosen: Anchor[] = [];
  for (let i = ends.at(-1) ?? -1; i >= 0; i = before[i] ?? -1) {
    const anchor = anchors[i];
    if (anchor) chosen.push(anchor);
  }
  return chosen.reverse();
}

/** Marks the fewest changes. Returns false, and marks nothing, if there are too many to find them. */
function markShortest(
  a: Int32Array,
  b: Int32Array,
  { oldStart, oldEnd, newStart, newEnd }: Range,
  removed: Uint8Array,
  added: Uint8Array,
  work: { steps: number },
): boolean {
  const n = oldEnd - oldStart;
  const m = newEnd - newStart;
  const max = Math.min(n + m, editsMax);
  const width = 2 * max + 3;
  const middle = max + 1;
  const furthest = new Int32Array(width);
  const rounds: Int32Array[] = [];
  for (let d = 0; d <= max; d++) {
    rounds.push(furthest.slice(middle - d, middle + d + 1));
    for (let k = -d; k <= d; k += 2) {
      const isDown = k === -d || (k !== d && at(furthest, middle + k - 1) < at(furthest, middle + k + 1));
      let x = isDown ? at(furthest, middle + k + 1) : at(furthest, middle + k - 1) + 1;
      let y = x - k;
      const start = x;
      while (x < n && y < m && a[oldStart + x] === b[newStart + y]) {
        x += 1;
        y += 1;
      }
      work.steps -= 1 + x - start;
      if (work.steps < 0) return false;
      furthest[middle + k] = x;
      if (x < n || y < m) continue;
      markPath(rounds, { n, m, oldStart, newStart }, removed, added);
      return true;
    }
  }
  return false;
}

function at(array: Int32Array, index: number): number {
  return array[index] ?? 0;
}

/** Walks back through the rounds and marks the change of each. */
function markPath(
  rounds: readonly Int32Array[],
  { n, m, oldStart, newStart }: { n: number; m: number; oldStart: number; newStart: number },
  removed: Uint8Array,
  added: Uint8Array,
): void {
  let x = n;
  let y = m;
  for (let d = rounds.length - 1; d > 0; d--) {
    const furthest = rounds[d] ?? new Int32Array(0);
    const value = (k: number) => at(furthest, k + d);
    const k = x - y;
    const isDown = k === -d || (k !== d && value(k - 1) < value(k + 1));
    const before = isDown ? k + 1 : k - 1;
    x = value(before);
    y = x - before;
    if (isDown) added[newStart + y] = 1;
    else removed[oldStart + x] = 1;
  }
}

/** The changed lines with some of those around them, as far as they fit. */
function writeHunks(old: readonly string[], now: readonly string[], removed: Uint8Array, added: Uint8Array) {
  const hunks: Hunk[] = [];
  const room = { lines: hunkLinesMax, characters: hunkCharactersMax };
  const put = (type: ComparedLine['type'], text = '') => {
    room.lines -= 1;
    room.characters -= text.length;
    if (room.lines >= 0 && room.characters >= 0) hunks.at(-1)?.lines.push({ type, text });
  };
  let sameSince = Number.POSITIVE_INFINITY;
  for (let i = 0, j = 0; i < old.length || j < now.length; ) {
    if (room.lines < 0 || room.characters < 0) return { hunks, truncated: true };
    const isRemoved = removed[i] === 1;
    if (!isRemoved && added[j] !== 1) {
      sameSince += 1;
      if (sameSince <= contextLines) put('same', old[i]);
      i += 1;
      j += 1;
      continue;
    }
    const continues = sameSince <= 2 * contextLines;
    const above = continues ? Math.max(0, sameSince - contextLines) : Math.min(contextLines, i, j);
    if (!continues) hunks.push({ old_start: i - above + 1, new_start: j - above + 1, lines: [] });
    for (const text of old.slice(i - above, i)) put('same', text);
    put(isRemoved ? 'removed' : 'added', isRemoved ? old[i] : now[j]);
    sameSince = 0;
    if (isRemoved) i += 1;
    else j += 1;
  }
  return { hunks, truncated: room.lines < 0 || room.characters < 0 };
}
