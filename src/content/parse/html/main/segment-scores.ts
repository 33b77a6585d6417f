import { type SegmentTree, segmentTrees } from './segment-trees.ts';

/** How probable it is that each segment is content: the values of all trees add up to its log odds. */
export function scoreSegments(features: number[][], trees: readonly SegmentTree[] = segmentTrees): number[] {
  return features.map((row) => 1 / (1 + Math.exp(-trees.reduce((points, tree) => points + treeValue(tree, row), 0))));
}

export function treeValue([features, bounds, children, values]: SegmentTree, row: number[]): number {
  if (features.length === 0) return values[0] ?? 0;
  let node = 0;
  while (node >= 0) {
    const value = row[features[node] ?? 0] ?? 0;
    node = children[node * 2 + (value > (bounds[node] ?? 0) ? 1 : 0)] ?? -1;
  }
  return values[-1 - node] ?? 0;
}

/** Chooses the segments that promise the highest F1 over the words of the page: the best ones down to a bound. */
export function chooseSegments(scores: number[], words: number[]): boolean[] {
  const order = scores.map((_score, at) => at).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0));
  const wanted = scores.reduce((sum, score, at) => sum + score * (words[at] ?? 0), 0);
  let [kept, right, best] = [0, 0, 0];
  for (const at of order) {
    kept += words[at] ?? 0;
    right += (scores[at] ?? 0) * (words[at] ?? 0);
    best = Math.max(best, (2 * right) / Math.max(1, kept + wanted));
  }
  // A segment raises the F1 when it is content with more than half the probability of the F1 itself.
  return scores.map((score) => score > best / 2);
}
