import { setTimeout as wait } from 'node:timers/promises';
import { Connection, type ConnectionOptions } from './connection.ts';

const reconnectMs = 250;
const reconnectMsMax = 5_000;
/** An idle connection is checked after this many times `timeoutMs`. */
const idleTimeouts = 3;

type Subscription = { hear: (payload: string) => void; onListen: (() => void) | undefined };

/** Receives database notifications on a dedicated connection, which is reopened when it is lost. */
export class Listener {
  readonly #options: ConnectionOptions;
  readonly #channels = new Map<string, Set<Subscription>>();
  readonly #stopping = new AbortController();
  #connecting: Promise<Connection> | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /**
   * Resolves when notifications start to arrive.
   * @param onListen is called then, and after each reconnection, because notifications may have been missed
   */
  async listen(
    channel: string,
    hear: (payload: string) => void,
    onListen?: () => void,
  ): Promise<{ unlisten(): Promise<void> }> {
    const subscription = { hear, onListen };
    const connection = await this.#connected();
    const known = this.#channels.get(channel);
    if (known) known.add(subscription);
    else {
      this.#channels.set(channel, new Set([subscription]));
      await connection.runScript(`listen "${channel}"`);
    }
    onListen?.();
    return { unlisten: () => this.#unlisten(channel, subscription) };
  }

  async #connected(): Promise<Connection> {
    this.#connecting ??= this.#connect();
    try {
      return await this.#connecting;
    } catch (error) {
      this.#connecting = undefined;
      throw error;
    }
  }

  async end(): Promise<void> {
    this.#stopping.abort();
    const connection = await this.#connecting?.catch(() => undefined);
    await connection?.close();
  }

  async #unlisten(channel: string, subscription: Subscription): Promise<void> {
    const subscriptions = this.#channels.get(channel);
    subscriptions?.delete(subscription);
    if (subscriptions?.size !== 0) return;
    this.#channels.delete(channel);
    const connection = await this.#connecting?.catch(() => undefined);
    await connection?.runScript(`unlisten "${channel}"`).catch(() => {});
  }

  async #connect(): Promise<Connection> {
    const { timeoutMs } = this.#options;
    const connection = await Connection.open(this.#options, () => {
      clearInterval(trying);
      if (this.#stopping.signal.aborted) return;
      this.#connecting = this.#reconnect();
      // Rejects only when the listener ends.
      this.#connecting.catch(() => {});
    });
    const trying = setInterval(() => tryConnection(connection, timeoutMs), timeoutMs * idleTimeouts).unref();
    connection.onNotification((channel, payload) => {
      for (const { hear } of this.#channels.get(channel) ?? []) hear(payload);
    });
    return connection;
  }

  async #reconnect(): Promise<Connection> {
    for (let pauseMs = reconnectMs; ; pauseMs = Math.min(pauseMs * 2, reconnectMsMax)) {
      await wait(pauseMs, undefined, { signal: this.#stopping.signal, ref: false });
      try {
        const connection = await this.#connect();
        for (const channel of this.#channels.keys()) await connection.runScript(`listen "${channel}"`);
        for (const subscriptions of this.#channels.values()) for (const { onListen } of subscriptions) onListen?.();
        return connection;
      } catch {
        // The database is still unavailable.
      }
    }
  }
}

/** Ends a connection that gets no response, because it would get no notifications either. */
function tryConnection(connection: Connection, timeoutMs: number): void {
  if (connection.isLost) return;
  const timer = setTimeout(() => connection.destroy(), timeoutMs).unref();
  void connection
    .runScript('select 1')
    .catch(() => {})
    .finally(() => clearTimeout(timer));
}
