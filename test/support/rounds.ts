/** `npm run prove` makes this many times the runs of `npm test`. */
export const modelTimes = Number(process.env.MODEL_TIMES ?? 1);

/** What generated cases are made from. The same each time unless it is given. */
export const modelSeed = Number(process.env.MODEL_SEED ?? 23_110) | 0;

/** How many runs a model test makes, and from which seed. `npm run prove` makes more than `npm test`. */
export function modelRuns(runs: number): { numRuns: number; seed: number } {
  return { numRuns: Math.ceil(runs * modelTimes), seed: modelSeed };
}

/** Pseudo-random numbers from 0 to 1, reproducible from a seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The first character of a line that `npm run prove` shows while a part runs. */
export const progressMark = '⋯';

/** Tells `npm run prove` how many rounds of a long part are over. Silent elsewhere. */
export function reportProgress(done: number, all: number, what: string): void {
  if (process.env.PROVE_PROGRESS === '1') process.stderr.write(`${progressMark} ${done} of ${all} ${what}\n`);
}
