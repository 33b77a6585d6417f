import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';

/*
 * Ratios of Quarry to the bare baseline of the same run, the higher the better. They are comparable between machines,
 * within the noise of a benchmark; rates are not.
 */

/** Set by `bench/run.ts --check`: the file to which a benchmark appends its ratios. */
export const ratiosVariable = 'BENCH_RATIOS';

const committedFile = new URL('./ratios.json', import.meta.url);
/** By how much a ratio may be below the committed one. */
const worseMax = 0.15;

/** Records a ratio for the comparison with the committed one. Does nothing in a run without a comparison. */
export function keepRatio(name: string, ratio: number): void {
  const file = process.env[ratiosVariable];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify([name, Number(ratio.toPrecision(3))])}\n`);
}

export type Ratios = Record<string, number>;

export function readKept(file: string): Ratios {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return Object.fromEntries(lines.map((line) => JSON.parse(line) as [string, number]));
}

export function readCommitted(): Ratios {
  return JSON.parse(readFileSync(committedFile, 'utf8')) as Ratios;
}

export function commitRatios(ratios: Ratios): void {
  const merged = { ...readCommitted(), ...ratios };
  const sorted = Object.fromEntries(Object.entries(merged).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(committedFile, `${JSON.stringify(sorted, null, 2)}\n`);
}

/** The names of the ratios that got worse by more than 15 %. */
export function findWorse(measured: Ratios, committed: Ratios): string[] {
  return Object.entries(measured)
    .filter(([name, ratio]) => ratio < (committed[name] ?? 0) * (1 - worseMax))
    .map(([name]) => name);
}
