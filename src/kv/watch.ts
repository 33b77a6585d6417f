import type { Database } from '../db/database.ts';
import { isForeignKeyViolation } from '../db/database.ts';
import type { LogSource } from '../http/sse.ts';
import type { Caller } from '../tenancy/caller.ts';
import { targetOwner, userNotFound } from './owner.ts';
import { presentChange } from './present.ts';
import type { KvOwner } from './store.ts';
import { readLog, renewWatch, startWatch } from './watch-store.ts';

/** The kind of the log in notifications: the trigger kv_log names it. */
export const kvTopic = 'kv';

/** Changes per read of the log. */
const readBounds = { rowsMax: 500, bytesMax: 1024 * 1024 };
/** A log is kept for at least this long after its last watch began. */
const keptSecondsMin = 3_600;

/** Prepares watches of users' entries, and shows their logs to streams. */
export function createKvWatch({ db, streamSecondsMax }: { db: Database; streamSecondsMax: number }) {
  const keptSeconds = Math.max(keptSecondsMin, 2 * streamSecondsMax);
  const source: LogSource = {
    async readLog(appId, userId, after) {
      const log = await readLog(db, { appId, userId }, after, readBounds);
      if (log === undefined) return undefined;
      const entries = log.changes?.map((change) => presentChange(userId, change));
      return { position: log.position, entries };
    },
    filterVisible: async (caller, ids) => ids.filter((id) => id === caller.userId),
  };
  return {
    source,

    /** From its return on, every change of the owner's entries is logged. */
    async follow(caller: Caller, user: unknown): Promise<KvOwner> {
      const owner = targetOwner(caller, user);
      if (await renewWatch(db, owner, keptSeconds)) return owner;
      try {
        if (!(await db.begin((tx) => startWatch(tx, owner, keptSeconds)))) throw userNotFound();
      } catch (error) {
        throw isForeignKeyViolation(error) ? userNotFound() : error;
      }
      return owner;
    },
  };
}

export type KvWatch = ReturnType<typeof createKvWatch>;
