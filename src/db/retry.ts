import { setTimeout as wait } from 'node:timers/promises';
import { DatabaseError } from './errors.ts';

const triesMax = 5;
const firstPauseMs = 10;

/**
 * Repeats work that PostgreSQL aborted because it conflicted with other work: a deadlock (40P01), a serialisation
 * failure (40001), or a prepared statement whose tables have changed. Five attempts at most, with growing random pauses.
 */
export async function retryOnConflict<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === triesMax || !isConflict(error)) throw error;
      await wait(Math.random() * firstPauseMs * 2 ** tries);
    }
  }
}

function isConflict(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  return error.code === '40P01' || error.code === '40001' || isStalePlan(error);
}

/** The columns of a prepared statement have changed, or a pooler has dropped the statement. */
export function isStalePlan(error: unknown): boolean {
  return (
    error instanceof DatabaseError &&
    (error.routine === 'RevalidateCachedQuery' || error.routine === 'FetchPreparedStatement')
  );
}
