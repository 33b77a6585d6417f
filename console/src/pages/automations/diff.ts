type DiffLine = { kind: 'same' | 'added' | 'removed'; text: string };

const cellsMax = 4_000_000;

export type DiffRow = { before?: DiffLine; after?: DiffLine };

/** The lines of both texts beside each other: what was removed beside what was added in its place. */
export function pairLines(lines: DiffLine[]): DiffRow[] {
  const rows: DiffRow[] = [];
  /** The first row since the last common line that has nothing on its right. */
  let open = 0;
  for (const line of lines) {
    const row = rows[open];
    if (line.kind === 'same') rows.push({ before: line, after: line });
    else if (line.kind === 'removed') rows.push({ before: line });
    else if (row === undefined) rows.push({ after: line });
    else row.after = line;
    if (line.kind === 'same') open = rows.length;
    else if (line.kind === 'added') open += 1;
  }
  return rows;
}

/** The line differences between two texts, by the longest common subsequence. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split('\n'), after.split('\n')];
  // The texts are too long for the table: show everything as changed.
  if ((a.length + 1) * (b.length + 1) > cellsMax)
    return [
      ...a.map((text) => ({ kind: 'removed' as const, text })),
      ...b.map((text) => ({ kind: 'added' as const, text })),
    ];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  const at = (row: number, column: number) => common[row * width + column] ?? 0;
  for (let row = a.length - 1; row >= 0; row--)
    for (let column = b.length - 1; column >= 0; column--)
      common[row * width + column] =
        a[row] === b[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < a.length || column < b.length) {
    if (row < a.length && column < b.length && a[row] === b[column]) {
      lines.push({ kind: 'same', text: a[row] ?? '' });
      row += 1;
      column += 1;
    } else if (column >= b.length || (row < a.length && at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ kind: 'removed', text: a[row] ?? '' });
      row += 1;
    } else {
      lines.push({ kind: 'added', text: b[column] ?? '' });
      column += 1;
    }
  }
  return lines;
}
