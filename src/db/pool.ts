import { Lanes } from '../fairness/lanes.ts';
import { type RecentApps, recentApps } from '../fairness/recent-apps.ts';
import { currentLane } from './app-lane.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import { ConnectionError } from './errors.ts';
import { SilenceWatch } from './silence.ts';

const lifetimeMs = 60 * 60 * 1_000;
/** With one connection, an app could do nothing while one of its statements is slow. */
const besideOthersMin = 2;
/** Work waits for a free connection for at most this many times `timeoutMs`. */
const waitTimeouts = 3;

/**
 * A pool of up to `size` connections, opened as needed. Work that finds none free waits in the lane of its app, for a
 * limited time. A lost connection is replaced when it is next needed.
 */
export class Pool {
  readonly #options: ConnectionOptions;
  readonly #size: number;
  readonly #open = new Set<Connection>();
  readonly #silence: SilenceWatch;
  #opening = 0;
  readonly #free: Connection[] = [];
  /** A free connection goes to the app that holds the fewest: a thousand slow statements delay another app by one. */
  readonly #lanes = new Lanes<Waiting>({ slots: Number.POSITIVE_INFINITY });
  readonly #rule: { mayTake(lane: string, held: number): boolean };
  /** The lane of each connection in use. */
  readonly #users = new Map<Connection, string>();
  #ended: Promise<void> | undefined;
  #onEmpty: (() => void) | undefined;

  /** @param apps those that send requests to this process: while others do, an app has half of the connections */
  constructor(options: ConnectionOptions, size: number, apps: RecentApps = recentApps) {
    this.#options = options;
    this.#size = size;
    const besideOthers = Math.max(besideOthersMin, Math.floor(size / 2));
    this.#rule = { mayTake: (lane, held) => held < besideOthers || lane === '' || !apps.hasOthers(lane) };
    this.#silence = new SilenceWatch(options, this.#open, {
      onUnresponsive: (error) => this.#refuse(error, this.#lanes.waiting),
      onForgotten: () => this.#dropFree(),
    });
  }

  /** Reserves a connection for one caller until it is released. */
  acquire(): Connection | Promise<Connection> {
    if (this.#ended) throw ended();
    const lane = currentLane();
    if (!this.#rule.mayTake(lane, this.#lanes.heldBy(lane))) return this.#wait();
    for (let connection = this.#free.pop(); connection !== undefined; connection = this.#free.pop())
      if (!connection.isLost) {
        this.#lanes.hold(lane);
        this.#users.set(connection, lane);
        return connection;
      }
    return this.#wait();
  }

  /** Reserves a connection that is new or was just used: the server may have ended others unnoticed. */
  acquireWorking(): Connection | Promise<Connection> {
    if (this.#ended) throw ended();
    const unsure = this.#open.size >= this.#size ? this.#free.pop() : undefined;
    const connection = this.#wait();
    if (unsure !== undefined) this.#close(unsure);
    return connection;
  }

  #wait(): Promise<Connection> {
    const timeoutMs = this.#options.timeoutMs * waitTimeouts;
    const lane = currentLane();
    const waited: Waiting = Promise.withResolvers<Connection>();
    this.#lanes.add(lane, waited);
    this.#openMore();
    const timer = setTimeout(() => {
      this.#lanes.remove(lane, waited);
      waited.reject(new ConnectionError('NO_FREE_CONNECTION', 'No connection to the database became free in time.'));
    }, timeoutMs);
    return waited.promise.finally(() => clearTimeout(timer));
  }

  release(connection: Connection): void {
    const isOld = performance.now() - connection.openedAt > lifetimeMs;
    const mayStay = !connection.isLost && !isOld && this.#ended === undefined;
    this.#endUse(connection);
    const next = mayStay ? this.#lanes.take(this.#rule) : undefined;
    if (!mayStay) this.#close(connection);
    else if (next === undefined) this.#free.push(connection);
    else {
      this.#users.set(connection, next.lane);
      next.item.resolve(connection);
    }
  }

  /** Refuses new work, waits for running statements, and after `timeoutSeconds` aborts those still running. */
  end(timeoutSeconds: number): Promise<void> {
    this.#ended ??= this.#end(timeoutSeconds);
    return this.#ended;
  }

  async #end(timeoutSeconds: number): Promise<void> {
    this.#refuse(ended(), this.#lanes.waiting);
    const free = this.#free.splice(0);
    for (const connection of free) this.#open.delete(connection);
    const isEmpty = this.#open.size + this.#opening === 0;
    const over = Promise.withResolvers<void>();
    this.#onEmpty = over.resolve;
    const timer = setTimeout(() => {
      for (const connection of [...free, ...this.#open]) connection.destroy();
      over.resolve();
    }, timeoutSeconds * 1_000);
    await Promise.all([...free.map((connection) => connection.close().catch(() => {})), isEmpty || over.promise]);
    clearTimeout(timer);
    this.#silence.stop();
  }

  #openMore(): void {
    if (this.#open.size + this.#opening >= this.#size || this.#opening >= this.#lanes.waiting) return;
    if (!this.#lanes.canTake(this.#rule)) return;
    this.#opening += 1;
    let opened: Connection | undefined;
    const lose = () => opened && this.#lose(opened);
    Connection.open(this.#options, lose).then(
      (connection) => {
        opened = connection;
        this.#opening -= 1;
        this.#open.add(connection);
        this.#silence.start();
        this.release(connection);
      },
      (error: unknown) => {
        this.#opening -= 1;
        // If no connection can be opened and none is left, all waiting work fails.
        this.#refuse(error, this.#open.size === 0 ? this.#lanes.waiting : 1);
        if (this.#open.size + this.#opening === 0) this.#onEmpty?.();
      },
    );
  }

  #refuse(error: unknown, count: number): void {
    for (let left = count; left > 0; left--) {
      const next = this.#lanes.take();
      if (next === undefined) return;
      this.#lanes.release(next.lane, 0);
      next.item.reject(error);
    }
  }

  #endUse(connection: Connection): void {
    const lane = this.#users.get(connection);
    // A new connection has not been used yet.
    if (lane === undefined) return;
    this.#users.delete(connection);
    this.#lanes.release(lane, 1);
  }

  /** A session that PostgreSQL has announced to end, or whose server refuses writes, is still open. */
  #close(connection: Connection): void {
    this.#drop(connection);
    void connection.close().catch(() => {});
  }

  #lose(connection: Connection): void {
    const at = this.#free.indexOf(connection);
    if (at < 0) return;
    this.#free.splice(at, 1);
    this.#drop(connection);
  }

  #dropFree(): void {
    for (const connection of this.#free.splice(0)) {
      this.#drop(connection);
      connection.destroy();
    }
  }

  #drop(connection: Connection): void {
    this.#open.delete(connection);
    if (this.#ended !== undefined && this.#open.size + this.#opening === 0) this.#onEmpty?.();
    this.#openMore();
  }
}

type Waiting = PromiseWithResolvers<Connection>;

function ended(): ConnectionError {
  return new ConnectionError('CONNECTION_ENDED', 'The connections to the database are closed.');
}
