import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects all garbage of this process, so that what is measured next is memory in use. */
export const collectGarbage = runInNewContext('gc') as () => void;
