import type { Database, Db } from '../../db/database.ts';
import { isDatabaseUnavailable } from '../../db/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { dueAt } from './configuration.ts';
import { lockDueSource, type SourceRow, setNextPull } from './store.ts';

type ScheduleDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  pullDue(db: Db, source: SourceRow): Promise<unknown>;
};

/** When a pull that could not be started is tried again. */
const failedMs = 15 * 60_000;

/**
 * Starts the pulls that are due, each in the transaction that sets the time of the next one: a crash loses none. A source
 * whose pull cannot be started delays no other.
 */
export async function startDuePulls(deps: ScheduleDeps): Promise<void> {
  while (await startDuePull(deps));
}

/** Returns whether there was one. */
async function startDuePull({ db, clock, log, pullDue }: ScheduleDeps): Promise<boolean> {
  const now = clock.now();
  let source: SourceRow | undefined;
  try {
    await db.begin(async (tx) => {
      source = await lockDueSource(tx, now);
      if (source === undefined) return;
      const { appId, id, type, state, payload } = source;
      await setNextPull(tx, appId, id, dueAt(type, state, payload, now));
      await pullDue(tx, source);
    });
  } catch (error) {
    if (source === undefined || isDatabaseUnavailable(error)) throw error;
    log.error({ err: error, source: source.id }, 'A pull could not be started by its schedule');
    await setNextPull(db, source.appId, source.id, new Date(now.getTime() + failedMs));
  }
  return source !== undefined;
}
