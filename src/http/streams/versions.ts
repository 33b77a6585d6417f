/** One state of a resource. */
export type Version = { version: number; data: unknown };

/** The current state of a resource. `ended` closes its streams after this state. */
export type Snapshot = Version & {
  id: string;
  ended: boolean;
  /** Returns every version after this one, the current one last, or undefined if some are no longer kept. */
  since?(version: number): Version[] | undefined;
};

type Reader = { version: number | undefined; fresh: boolean };

/**
 * The versions to send to a stream now, and a comment to send before them. A new stream always gets the current
 * state.
 */
export function updatesFor(stream: Reader, snapshot: Snapshot): { updates: Version[]; note: string } {
  const { version: sent, fresh } = stream;
  if (sent !== undefined && snapshot.version > sent + 1 && snapshot.since) {
    const updates = snapshot.since(sent);
    return updates
      ? { updates, note: '' }
      : { updates: [snapshot], note: `: the changes after ${sent} are not kept\n\n` };
  }
  const isNewer = fresh || sent === undefined || snapshot.version > sent;
  return { updates: isNewer ? [snapshot] : [], note: '' };
}
