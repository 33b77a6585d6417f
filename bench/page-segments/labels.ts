const runLength = 3;
const neighbours = 5;
const shortWords = 2;

/**
 * How much of each segment is in the reference: the share of its runs of three words. A run that the page has more
 * often than the reference counts if the text around it is also in the reference.
 */
export function labelSegments(segments: string[][], reference: string[]): number[] {
  const wanted = [1, 2, 3].map((length) => countRuns(reference, length));
  const runs = segments.map((words) => runsOf(words, Math.max(1, Math.min(runLength, words.length))));
  const onPage = new Map<string, number>();
  for (const run of runs.flat()) onPage.set(run, (onPage.get(run) ?? 0) + 1);
  const times = (run: string): number => wanted[run.split(' ').length - 1]?.get(run) ?? 0;
  const mean = (values: number[]): number => values.reduce((sum, one) => sum + one, 0) / Math.max(1, values.length);
  const first = runs.map((list) => mean(list.map((run) => Math.min(1, times(run) / (onPage.get(run) ?? 1)))));
  const around = surroundings(first, segments);
  const order = segments.map((_segment, at) => at).sort((a, b) => (around[b] ?? 0) - (around[a] ?? 0) || a - b);
  const used = new Map<string, number>();
  const labels = first.slice();
  for (const at of order)
    labels[at] = mean(
      (runs[at] ?? []).map((run) => {
        const before = used.get(run) ?? 0;
        used.set(run, before + 1);
        return before < times(run) ? 1 : 0;
      }),
    );
  const again = surroundings(labels, segments);
  return labels.map((label, at) =>
    (segments[at]?.length ?? 0) <= shortWords ? label * Math.min(1, 4 * (again[at] ?? 0)) : label,
  );
}

function runsOf(words: string[], length: number): string[] {
  return Array.from({ length: Math.max(0, words.length - length + 1) }, (_unused, at) =>
    words.slice(at, at + length).join(' '),
  );
}

function countRuns(words: string[], length: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (const run of runsOf(words, length)) counts.set(run, (counts.get(run) ?? 0) + 1);
  return counts;
}

function surroundings(labels: number[], segments: string[][]): number[] {
  const weights = segments.map((words) => Math.min(words.length, 30));
  return labels.map((_label, at) => {
    let [sum, total] = [0, 0];
    for (let other = Math.max(0, at - neighbours); other <= Math.min(labels.length - 1, at + neighbours); other++) {
      if (other === at) continue;
      sum += (weights[other] ?? 0) * (labels[other] ?? 0);
      total += weights[other] ?? 0;
    }
    return sum / Math.max(1, total);
  });
}
