import type { ServerResponse } from 'node:http';
import type { UserCaller } from '../tenancy/caller.ts';

/** One entry of a log that is streamed, as an event. */
export type LogEntry = { position: number; event: string; key: string; data: unknown };

/**
 * The log's last position, and its entries after another one; undefined when some of them are no longer kept. `ended`:
 * nothing follows that position.
 */
export type Log = { position: number; entries: LogEntry[] | undefined; ended?: boolean };

/** `after` undefined: only the log's position. */
type LogRead = { id: string; after: number | undefined };

/** A log whose entries are shown one by one. */
export type LogSource = {
  /** The position after which a reader without `Last-Event-ID` begins; absent: the current one. */
  from?: number;
  /** The kind of thing that the log is about: its changes may end the log. */
  endsWith?: string;
  /** The maximum number of logs per call of `readLogs`, which limits the memory of one read. */
  readsMax: number;
  /**
   * The entries of these logs after a position, in their order, as many as one read may return; none of a log for which
   * nothing was left of the read. Undefined for a log that has ended.
   */
  readLogs(appId: string, reads: readonly LogRead[]): Promise<(Log | undefined)[]>;
  /** Those of these logs that the user sees. */
  filterVisible(caller: UserCaller, ids: readonly string[]): Promise<string[]>;
  /** The positions of those entries of a log that the user sees. Without it, a user who sees the log sees all. */
  filterEntries?(caller: UserCaller, id: string, entries: readonly LogEntry[]): Promise<Set<number>>;
};

type Reader = {
  response: ServerResponse;
  /** The position after which the reader continues; undefined for one that begins now. */
  version: number | undefined;
  /** Nothing is sent yet. */
  fresh: boolean;
  accepts: (entry: LogEntry) => boolean;
};

/**
 * Sends a reader the entries it lacks, as far as it accepts them now. The first event is `ready`: from its position on
 * nothing is missed. `reset` says that changes are missing because they are no longer kept.
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
  const { response } = reader;
  if (reader.fresh) {
    reader.fresh = false;
    const start = reader.version === undefined || entries === undefined ? position : reader.version;
    response.write(frameOf(start, 'ready', { position: start }));
    if (reader.version === undefined) {
      reader.version = position;
      return false;
    }
  }
  if (entries === undefined) {
    const data = {
      position,
      message: `The changes after ${reader.version} are no longer kept: read the current state again.`,
    };
    response.write(frameOf(position, 'reset', data));
    reader.version = position;
    return false;
  }
  for (const entry of entries) {
    if (sees(entry) && reader.accepts(entry)) {
      if (response.writableNeedDrain) return true;
      let frame = frames.get(entry.position);
      if (frame === undefined) {
        frame = frameOf(entry.position, entry.event, entry.data);
        frames.set(entry.position, frame);
      }
      response.write(frame);
    }
    reader.version = entry.position;
  }
  return reader.version !== undefined && reader.version < position;
}

function frameOf(id: number, event: string, data: unknown): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
