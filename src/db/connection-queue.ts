import type { Connection } from './connection.ts';

type Waiting = {
  lane: string;
  resolve: (connection: Connection) => void;
  reject: (error: unknown) => void;
};

/**
 * Work that waits for a connection, in a lane for each app. A free connection goes to the lane that holds the fewest
 * connections, and among those to the lane served the longest time ago: an app with a thousand slow statements delays
 * another app by one of them.
 */
export class ConnectionQueue {
  readonly #lanes = new Map<string, Waiting[]>();
  /** The lane of each connection in use. */
  readonly #users = new Map<Connection, string>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(waiting: Waiting): void {
    const lane = this.#lanes.get(waiting.lane);
    if (lane === undefined) this.#lanes.set(waiting.lane, [waiting]);
    else lane.push(waiting);
    this.#length += 1;
  }

  /** Removes work that no longer waits. */
  remove(waiting: Waiting): void {
    const lane = this.#lanes.get(waiting.lane) ?? [];
    const at = lane.indexOf(waiting);
    if (at < 0) return;
    lane.splice(at, 1);
    this.#length -= 1;
    if (lane.length === 0) this.#lanes.delete(waiting.lane);
  }

  /** Removes and returns the work whose turn it is. */
  take(): Waiting | undefined {
    const name = this.#nextLane();
    const lane = name === undefined ? undefined : this.#lanes.get(name);
    const waiting = lane?.shift();
    if (name === undefined || lane === undefined || waiting === undefined) return undefined;
    this.#length -= 1;
    this.#lanes.delete(name);
    if (lane.length > 0) this.#lanes.set(name, lane);
    return waiting;
  }

  noteUse(connection: Connection, lane: string): void {
    this.#users.set(connection, lane);
  }

  noteEnd(connection: Connection): void {
    this.#users.delete(connection);
  }

  /** The lane with the fewest connections, and among those the one served the longest time ago. */
  #nextLane(): string | undefined {
    if (this.#lanes.size < 2) return this.#lanes.keys().next().value;
    const held = new Map<string, number>();
    for (const lane of this.#users.values()) held.set(lane, (held.get(lane) ?? 0) + 1);
    let next: string | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const name of this.#lanes.keys()) {
      const count = held.get(name) ?? 0;
      if (count >= fewest) continue;
      next = name;
      fewest = count;
      if (count === 0) break;
    }
    return next;
  }
}
