import { setTimeout as wait } from 'node:timers/promises';
import type { Database } from '../db/database.ts';
import type { Log, LogSource } from '../http/streams/log-stream.ts';
import { AppError, requireJsonSize } from '../lib/errors.ts';
import { limits } from '../lib/limits.ts';
import type { Scope } from '../tenancy/caller.ts';
import { emitEvent } from './emit.ts';
import { presentEvent } from './present.ts';
import { listOpenWriters, listSeenPositions, readEventLog, renewFollowing, startFollowing } from './store.ts';

/** Events per read of the log. */
const readBounds = { rowsMax: 500, bytesMax: 1024 * 1024 };
/** Events are logged for at least this long after a stream begins. */
const keptSecondsMin = 3_600;
const writersWaitMs = 10_000;
const writersPollMs = 20;

export type EventService = ReturnType<typeof createEventService>;

export function createEventService({ db, streamSecondsMax }: { db: Database; streamSecondsMax: number }) {
  const keptSeconds = Math.max(keptSecondsMin, 2 * streamSecondsMax);

  /** Waits until the changes have ended that began before events were logged: they may have written no event. */
  async function waitForWriters(): Promise<void> {
    const deadline = AbortSignal.timeout(writersWaitMs);
    for (let open = await listOpenWriters(db); open.length > 0; open = await listOpenWriters(db, open)) {
      if (deadline.aborted)
        throw new AppError('unavailable', 'A long change is in progress. Try again.', {
          headers: { 'retry-after': '5' },
        });
      await wait(writersPollMs);
    }
  }

  return {
    /** Writes an event of the app itself. Returns its UUID. */
    async emit({ appId, sandboxId }: Scope, name: string, payload: unknown): Promise<string> {
      requireJsonSize('payload', payload, limits.payloadBytesMax);
      const id = await emitEvent(db, { appId, sandboxId, name, payload: payload ?? {} }, true);
      if (id === undefined) throw new Error('The event was not written.');
      return id;
    },

    /** After it returns, every event is logged. A reader that continues need not wait, because its first stream did. */
    async follow(scope: Scope, continues: boolean): Promise<void> {
      const renewed = await renewFollowing(db, scope, keptSeconds);
      if (!renewed) await startFollowing(db, scope, keptSeconds);
      if (!renewed || !continues) await waitForWriters();
    },
  };
}

/** The event log of production or of a sandbox, for streams. */
export function eventStream(db: Database): LogSource {
  async function readEvents(scope: Scope, after: number | undefined): Promise<Log | undefined> {
    const log = await readEventLog(db, scope, after, readBounds);
    if (log === undefined) return undefined;
    const entries = log.events?.map((event) => ({
      position: event.position,
      event: 'event',
      key: event.name,
      data: presentEvent(event),
    }));
    return { position: log.position, entries };
  }

  return {
    readsMax: 1,
    readLogs: (appId, reads) => Promise.all(reads.map(({ id, after }) => readEvents({ appId, sandboxId: id }, after))),
    filterVisible: async (caller, ids) => ids.filter((id) => id === caller.sandboxId),
    filterEntries: async (caller, _id, entries) =>
      new Set(
        await listSeenPositions(
          db,
          caller,
          entries.map(({ position }) => position),
        ),
      ),
  };
}
