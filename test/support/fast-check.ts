import fc from 'fast-check';
import { modelSeed } from './rounds.ts';

/*
 * fast-check with the seed of this run: `npm test` tries the same cases each time, `npm run prove` others each time. A
 * failure prints the seed; MODEL_SEED repeats it.
 */
fc.configureGlobal({ seed: modelSeed });

export default fc;
