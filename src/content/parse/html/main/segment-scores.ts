import { type SegmentTree, segmentTrees } from './segment-trees.ts';

/** The probability that each segment is content: the values of all trees add up to its log odds. */
export function scoreSegments(features: number[][], trees: readonly SegmentTree[] = segmentTrees): number[] {
  return features.map((row) => {
    let points = 0;
    for (const tree of trees) points += treeValue(tree, row);
    return 1 / (1 + Math.exp(-points));
  });
}

export function treeValue(tree: SegmentTree, row: number[]): number {
  const [features, bounds, children, values] = tree;
  if (features.length === 0) return values[0] ?? 0;
  let node = 0;
  while (node >= 0) {
    const value = row[features[node] ?? 0] ?? 0;
    node = children[node * 2 + (value > (bounds[node] ?? 0) ? 1 : 0)] ?? -1;
  }
  return values[-1 - node] ?? 0;
}

/** Chooses the segments that promise the highest F1 over the words of the page: the best ones down to a threshold. */
export function chooseSegments(scores: number[], words: number[]): boolean[] {
  const order = scores.map((_score, at) => at).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0));
  const wanted = scores.reduce((sum, score, at) => sum + score * (words[at] ?? 0), 0);
  let [kept, right, best] = [0, 0, 0];
  for (const at of order) {
    kept += words[at] ?? 0;
    right += (scores[at] ?? 0) * (words[at] ?? 0);
    best = Math.max(best, (2 * right) / Math.max(1, kept + wanted));
  }
  // A segment raises the F1 if its probability is more than half of the F1 itself.
  return scores.map((score) => score > best / 2);
}

/** The word F1 that a choice of segments promises. */
export function promisedScore(scores: number[], words: number[], chosen: boolean[]): number {
  let [kept, right, wanted] = [0, 0, 0];
  scores.forEach((score, at) => {
    const count = words[at] ?? 0;
    wanted += score * count;
    if (!chosen[at]) return;
    kept += count;
    right += score * count;
  });
  return (2 * right) / Math.max(1, kept + wanted);
}
