import { Connection, type ConnectionOptions } from './connection.ts';
import { ConnectionError } from './errors.ts';

const lifetimeMs = 60 * 60 * 1_000;

type Waiting = { resolve: (connection: Connection) => void; reject: (error: unknown) => void };

/**
 * Up to `size` connections, opened when they are needed. Work that finds none free waits for the next one, in order of
 * arrival. A lost connection is replaced when it is needed again.
 */
export class Pool {
  readonly #options: ConnectionOptions;
  readonly #size: number;
  readonly #open = new Set<Connection>();
  #opening = 0;
  readonly #free: Connection[] = [];
  #waiting: Waiting[] = [];
  #ended: Promise<void> | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(options: ConnectionOptions, size: number) {
    this.#options = options;
    this.#size = size;
  }

  /** A connection for one caller, until it is released. */
  acquire(): Connection | Promise<Connection> {
    if (this.#ended) throw ended();
    for (let connection = this.#free.pop(); connection !== undefined; connection = this.#free.pop())
      if (!connection.isLost) return connection;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#openMore();
    });
  }

  release(connection: Connection): void {
    const isOld = performance.now() - connection.openedAt > lifetimeMs;
    if (connection.isLost || isOld || this.#ended !== undefined) {
      this.#drop(connection);
      if (!connection.isLost) void connection.close().catch(() => {});
      return;
    }
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(connection);
    else next.resolve(connection);
  }

  /** Refuses new work, waits for running statements, and aborts what still runs after `timeoutSeconds`. */
  end(timeoutSeconds: number): Promise<void> {
    this.#ended ??= this.#end(timeoutSeconds);
    return this.#ended;
  }

  async #end(timeoutSeconds: number): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { reject } of waiting) reject(ended());
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
  }

  #openMore(): void {
    if (this.#open.size + this.#opening >= this.#size || this.#opening >= this.#waiting.length) return;
    this.#opening += 1;
    let opened: Connection | undefined;
    const lose = () => opened && this.#lose(opened);
    Connection.open(this.#options, lose).then(
      (connection) => {
        opened = connection;
        this.#opening -= 1;
        this.#open.add(connection);
        this.release(connection);
      },
      (error: unknown) => {
        this.#opening -= 1;
        this.#refuse(error);
      },
    );
  }

  /** When no connection can be opened and none is left, all waiting work fails. */
  #refuse(error: unknown): void {
    const refused = this.#waiting.splice(0, this.#open.size === 0 ? this.#waiting.length : 1);
    for (const { reject } of refused) reject(error);
    if (this.#open.size + this.#opening === 0) this.#onEmpty?.();
  }

  #lose(connection: Connection): void {
    const at = this.#free.indexOf(connection);
    if (at < 0) return;
    this.#free.splice(at, 1);
    this.#drop(connection);
  }

  #drop(connection: Connection): void {
    this.#open.delete(connection);
    if (this.#ended !== undefined && this.#open.size + this.#opening === 0) this.#onEmpty?.();
    this.#openMore();
  }
}

function ended(): ConnectionError {
  return new ConnectionError('CONNECTION_ENDED', 'The connections to the database are closed.');
}
