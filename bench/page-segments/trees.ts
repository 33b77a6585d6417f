import { treeValue } from '../../src/content/parse/html/main/segment-scores.ts';
import type { SegmentTree } from '../../src/content/parse/html/main/segment-trees.ts';

export type Sample = { features: number[]; label: number; weight: number };

type TreeOptions = { trees: number; leaves: number; rate: number; seed: number };

const binsMax = 63;
const featureShare = 0.4;
const rowShare = 0.7;
const rowsOfLeafMin = 60;
/** Pulls the values of small leaves towards zero. */
const penalty = 5;

type Column = { bins: Uint8Array; bounds: number[] };
type Split = { feature: number; bin: number; gain: number };
type Leaf = { rows: number[]; sums: Float64Array; split: Split | undefined; node: number };

/** Gradient boosting on the logistic loss, the best leaf first. The same samples give the same trees. */
export function fitTrees(samples: Sample[], { trees, leaves, rate, seed }: TreeOptions): SegmentTree[] {
  const random = randomNumbers(seed);
  const columns = binColumns(samples);
  const meanWeight = samples.reduce((sum, { weight }) => sum + weight, 0) / Math.max(1, samples.length);
  const points = new Float64Array(samples.length);
  const slopes = new Float64Array(samples.length);
  const curves = new Float64Array(samples.length);
  return Array.from({ length: trees }, () => {
    samples.forEach(({ label, weight }, row) => {
      const odds = 1 / (1 + Math.exp(-(points[row] ?? 0)));
      slopes[row] = (weight / meanWeight) * (odds - label);
      curves[row] = (weight / meanWeight) * odds * (1 - odds);
    });
    const rows = samples.map((_sample, row) => row).filter(() => random() < rowShare);
    const tried = columns.map((_column, at) => at).filter(() => random() < featureShare);
    const tree = growTree({ columns, tried, slopes, curves }, rows, leaves, rate);
    for (let row = 0; row < samples.length; row++)
      points[row] = (points[row] ?? 0) + treeValue(tree, samples[row]?.features ?? []);
    return tree;
  });
}

type Growing = { columns: Column[]; tried: number[]; slopes: Float64Array; curves: Float64Array };

function growTree(growing: Growing, rows: number[], leavesMax: number, rate: number): SegmentTree {
  const features: number[] = [];
  const bounds: number[] = [];
  const children: number[] = [];
  const root: Leaf = { rows, sums: sumRows(growing, rows), split: undefined, node: -1 };
  root.split = bestSplit(growing, root);
  const open: Leaf[] = [root];
  while (open.length < leavesMax) {
    const leaf = open.reduce((best, one) => ((one.split?.gain ?? 0) > (best.split?.gain ?? 0) ? one : best));
    if (leaf.split === undefined) break;
    const { feature, bin } = leaf.split;
    const { bins, bounds: steps } = growing.columns[feature] ?? { bins: new Uint8Array(), bounds: [] };
    const node = features.length;
    if (leaf.node >= 0) children[leaf.node] = node;
    features.push(feature);
    bounds.push(steps[bin] ?? 0);
    children.push(0, 0);
    const below = leaf.rows.filter((row) => (bins[row] ?? 0) <= bin);
    const above = leaf.rows.filter((row) => (bins[row] ?? 0) > bin);
    const small = below.length < above.length ? below : above;
    const sums = sumRows(growing, small);
    const rest = leaf.sums.map((sum, at) => sum - (sums[at] ?? 0));
    const parts = [below, above].map(
      (part, side): Leaf => ({
        rows: part,
        sums: part === small ? sums : rest,
        split: undefined,
        node: node * 2 + side,
      }),
    );
    for (const part of parts) part.split = bestSplit(growing, part);
    open.splice(open.indexOf(leaf), 1, ...parts);
  }
  const values = open.map(({ rows: own, node }, at) => {
    if (node >= 0) children[node] = -1 - at;
    const [slope, curve] = own.reduce<[number, number]>(
      ([a, b], row) => [a + (growing.slopes[row] ?? 0), b + (growing.curves[row] ?? 0)],
      [0, 0],
    );
    return Math.round((-10_000 * rate * slope) / (curve + penalty)) / 10_000 + 0;
  });
  return [features, bounds, children, values];
}

/** The sums of slopes, curves and counts of the rows, by feature and step. */
function sumRows({ columns, tried, slopes, curves }: Growing, rows: number[]): Float64Array {
  const sums = new Float64Array(tried.length * binsMax * 3);
  tried.forEach((feature, place) => {
    const bins = columns[feature]?.bins ?? new Uint8Array();
    const from = place * binsMax * 3;
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at] as number;
      const cell = from + (bins[row] as number) * 3;
      sums[cell] = (sums[cell] as number) + (slopes[row] as number);
      sums[cell + 1] = (sums[cell + 1] as number) + (curves[row] as number);
      sums[cell + 2] = (sums[cell + 2] as number) + 1;
    }
  });
  return sums;
}

function bestSplit({ columns, tried }: Growing, { rows, sums }: Leaf): Split | undefined {
  let best: Split | undefined;
  tried.forEach((feature, place) => {
    const steps = columns[feature]?.bounds.length ?? 0;
    const from = place * binsMax * 3;
    let [slope, curve] = [0, 0];
    for (let bin = 0; bin <= steps; bin++) {
      slope += sums[from + bin * 3] ?? 0;
      curve += sums[from + bin * 3 + 1] ?? 0;
    }
    let [left, leftCurve, count] = [0, 0, 0];
    for (let bin = 0; bin < steps; bin++) {
      left += sums[from + bin * 3] ?? 0;
      leftCurve += sums[from + bin * 3 + 1] ?? 0;
      count += sums[from + bin * 3 + 2] ?? 0;
      if (count < rowsOfLeafMin || rows.length - count < rowsOfLeafMin) continue;
      const gain =
        left ** 2 / (leftCurve + penalty) +
        (slope - left) ** 2 / (curve - leftCurve + penalty) -
        slope ** 2 / (curve + penalty);
      if (gain > (best?.gain ?? 1e-6)) best = { feature, bin, gain };
    }
  });
  return best;
}

/** Divides each feature into steps with about the same number of samples. */
function binColumns(samples: Sample[]): Column[] {
  const count = samples[0]?.features.length ?? 0;
  return Array.from({ length: count }, (_unused, at) => {
    const values = Float64Array.from(samples, ({ features }) => features[at] ?? 0);
    const sorted = values.slice().sort();
    const steps = new Set<number>();
    for (let step = 1; step < binsMax; step++) {
      const bound = Number((sorted[Math.floor((step * sorted.length) / binsMax)] ?? 0).toPrecision(4));
      if (bound < (sorted.at(-1) ?? 0)) steps.add(bound);
    }
    const bounds = [...steps].sort((a, b) => a - b);
    const bins = Uint8Array.from(values, (value) => {
      let bin = 0;
      while (bin < bounds.length && value > (bounds[bin] ?? 0)) bin += 1;
      return bin;
    });
    return { bins, bounds };
  });
}

/** Mulberry32: the same numbers on every machine. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
