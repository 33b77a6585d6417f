/** How many runs a model test makes, and from which seed. `npm run prove` makes more than `npm test`. */
export function modelRuns(runs: number): { numRuns: number; seed?: number } {
  const { MODEL_TIMES, MODEL_SEED } = process.env;
  const numRuns = Math.ceil(runs * Number(MODEL_TIMES ?? 1));
  // Without a seed, fast-check chooses one and prints it on a failure.
  return MODEL_SEED === undefined ? { numRuns } : { numRuns, seed: Number(MODEL_SEED) | 0 };
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
