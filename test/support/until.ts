import { setTimeout as wait } from 'node:timers/promises';

const lookMs = 10;

/** Waits until the condition holds. Pauses between checks, which leaves the processor to what the test waits for. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await wait(lookMs);
}
