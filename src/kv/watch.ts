import { type Database, isForeignKeyViolation } from '../db/database.ts';
import type { LogSource } from '../http/streams/log-stream.ts';
import type { Caller } from '../tenancy/caller.ts';
import { targetOwner, userNotFound } from './owner.ts';
import { presentChange } from './present.ts';
import type { KvOwner } from './store.ts';
import { readLogs, renewWatch, startWatch } from './watch-store.ts';

/** The kind of the log in notifications: the trigger kv_log names it. */
export const kvTopic = 'kv';

/** Changes per read, over all logs. */
const readBounds = { rowsMax: 1_000, bytesMax: 2 * 1024 * 1024 };
/** A log is kept for at least this long after its last watch began. */
const keptSecondsMin = 3_600;

/** Starts logs of users' entries, and reads them for event streams. */
export function createKvWatch({ db, streamSecondsMax }: { db: Database; streamSecondsMax: number }) {
  const keptSeconds = Math.max(keptSecondsMin, 2 * streamSecondsMax);
  const source: LogSource = {
    readsMax: 500,
    async readLogs(appId, reads) {
      const logs = await readLogs(db, appId, reads, readBounds);
      return logs.map((log, index) => {
        if (log === undefined) return undefined;
        const userId = reads[index]?.id ?? '';
        return { position: log.position, entries: log.changes?.map((change) => presentChange(userId, change)) };
      });
    },
    filterVisible: async (caller, ids) => ids.filter((id) => id === caller.userId),
  };
  return {
    source,

    /** Starts or extends the log of the owner. Every change after its return is logged. Throws 404 if there is no such user. */
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
