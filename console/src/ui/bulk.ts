import { asApiError } from './query.ts';
import { toast } from './toast.tsx';

const concurrentMax = 4;

/** Performs an action on many resources, a few at a time, and says how many succeeded. */
export async function forEachOf<T>(things: T[], done: string, perform: (thing: T) => Promise<unknown>): Promise<void> {
  const queue = things.values();
  let succeeded = 0;
  let lastProblem: string | undefined;
  await Promise.all(
    Array.from({ length: concurrentMax }, async () => {
      for (const thing of queue)
        try {
          await perform(thing);
          succeeded += 1;
        } catch (error) {
          lastProblem = asApiError(error).message;
        }
    }),
  );
  if (succeeded > 0) toast(`${succeeded} ${done}`);
  if (lastProblem !== undefined) toast(`${things.length - succeeded} not ${done}: ${lastProblem}`, 'bad');
}
