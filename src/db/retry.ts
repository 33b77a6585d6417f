import { setTimeout as wait } from 'node:timers/promises';
import { ConnectionError, DatabaseError } from './errors.ts';

const triesMax = 5;
const firstPauseMs = 10;

/** One attempt at some work. */
export type Try = {
  /** Whether the last attempt lost its session; other sessions may be lost, too. */
  readonly afterLoss: boolean;
  /** Whether the work would have had no effect if its session were lost now. */
  isWithoutEffect: boolean;
};

/**
 * Repeats work that PostgreSQL aborted because of a conflict with other work: a deadlock (40P01), a serialisation
 * failure (40001), or a prepared statement whose tables have changed. Makes at most five attempts, with growing
 * random pauses. Work whose session was lost before it could have an effect is repeated once.
 */
export async function retryOnConflict<T>(work: (attempt: Try) => Promise<T>): Promise<T> {
  let afterLoss = false;
  for (let tries = 1; ; tries++) {
    const attempt = { afterLoss, isWithoutEffect: false };
    try {
      return await work(attempt);
    } catch (error) {
      const isRepeatable = !afterLoss && attempt.isWithoutEffect && isSessionLost(error);
      if (isRepeatable) afterLoss = true;
      else if (tries === triesMax || !isConflict(error)) throw error;
      else await wait(Math.random() * firstPauseMs * 2 ** tries);
    }
  }
}

function isConflict(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  return error.code === '40P01' || error.code === '40001' || isStalePlan(error);
}

/** Shutdown, a terminated session, a broken connection, or a server that is no longer the primary. */
function isSessionLost(error: unknown): boolean {
  if (error instanceof ConnectionError) return true;
  return error instanceof DatabaseError && /^(57P0[12]|08...|25006)$/.test(error.code ?? '');
}

/** The columns of a prepared statement have changed, or a pooler has dropped the statement. */
export function isStalePlan(error: unknown): boolean {
  return (
    error instanceof DatabaseError &&
    (error.routine === 'RevalidateCachedQuery' || error.routine === 'FetchPreparedStatement')
  );
}
