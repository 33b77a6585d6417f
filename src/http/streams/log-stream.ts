import type { UserCaller } from '../../tenancy/caller.ts';
import type { Outlet } from './unread-bytes.ts';

/** What a reader saw last if its `Last-Event-ID` names no position. No log keeps what follows it. */
export const notAPosition = -1;

/** A resource that a stream shows. */
type StreamedResource = { appId: string; id: string };

/** One entry of a streamed log, sent as one event. */
export type LogEntry = { position: number; event: string; key: string; data: unknown };

/**
 * The log's last position, and its entries after the position that was asked for. `entries` is undefined if some of
 * them are no longer kept; `ended` means that nothing follows the last position.
 */
export type Log = { position: number; entries: LogEntry[] | undefined; ended?: boolean };

/** With `after` undefined, only the log's position is read. */
type LogRead = { id: string; after: number | undefined };

/** Who sees the resources of a kind. */
export type Sight = {
  /** Returns the ids of those that exist. Without it, the resource ends only with the credential of its reader. */
  filterExisting?(resources: readonly StreamedResource[]): Promise<string[]>;
  /** Returns the ids of the resources that the user may see. */
  filterVisible(caller: UserCaller, ids: readonly string[]): Promise<string[]>;
  /** True if grants or groups decide who sees a resource: a reader then loses sight of it with the same role and teams. */
  hasGrants?: true;
};

/** A log that is streamed entry by entry. */
export type LogSource = Sight & {
  /** Where a reader without `Last-Event-ID` starts: after this position, or by default after the current one. */
  from?: number;
  /** The kind of resource that the log belongs to. A change of the resource may end the log. */
  endsWith?: string;
  /** The maximum number of logs per call of `readLogs`, which limits the memory of one read. */
  readsMax: number;
  /**
   * Returns the entries of each log after a position, in order, as many as one read may return. A log that the read
   * had no room for gets no entries. Undefined for a log that has ended.
   */
  readLogs(appId: string, reads: readonly LogRead[]): Promise<(Log | undefined)[]>;
  /**
   * Returns the positions of the log's entries that the user may see. Without it, a user who may see the log sees all
   * entries.
   */
  filterEntries?(caller: UserCaller, id: string, entries: readonly LogEntry[]): Promise<Set<number>>;
};

type Reader = {
  outlet: Outlet;
  /** The position after which the reader continues; undefined for a reader that starts with this read. */
  version: number | undefined;
  /** True until the first event is sent. */
  fresh: boolean;
  accepts: (entry: LogEntry) => boolean;
};

/**
 * Sends a reader the entries it lacks, as many as it accepts now. The first event is `ready`: the reader misses
 * nothing after its position. `reset` means that changes are lost because they are no longer kept.
 * @param frames the events as text, shared by all readers of the log
 * @param sees whether the reader may see an entry
 * @returns whether there is more to send
 */
export function sendLog(
  reader: Reader,
  { position, entries }: Log,
  frames: Map<number, string>,
  sees: (entry: LogEntry) => boolean,
): boolean {
  const { outlet } = reader;
  if (reader.fresh) {
    reader.fresh = false;
    const start = reader.version === undefined || entries === undefined ? position : reader.version;
    outlet.write(frameOf(start, 'ready', { position: start }));
    if (reader.version === undefined) {
      reader.version = position;
      return false;
    }
  }
  if (entries === undefined) {
    const why =
      reader.version === notAPosition
        ? '`Last-Event-ID` is not an id of this stream'
        : `The changes after ${reader.version} are no longer kept`;
    const data = { position, message: `${why}: read the current state again.` };
    outlet.write(frameOf(position, 'reset', data));
    reader.version = position;
    return false;
  }
  for (const entry of entries) {
    if (sees(entry) && reader.accepts(entry)) {
      if (outlet.isFull) return true;
      let frame = frames.get(entry.position);
      if (frame === undefined) {
        frame = frameOf(entry.position, entry.event, entry.data);
        frames.set(entry.position, frame);
      }
      outlet.write(frame);
    }
    reader.version = entry.position;
  }
  return reader.version !== undefined && reader.version < position;
}

function frameOf(id: number, event: string, data: unknown): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
