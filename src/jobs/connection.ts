import pg from 'pg';
import type { DatabaseTarget } from '../db/address.ts';
import { Client } from '../db/client.ts';
import { SilenceWatch } from '../db/silence.ts';
import type { Logger } from '../log.ts';

/** Statements of the job queue are short. One that PostgreSQL works on for this long is cancelled. */
const statementMsMax = 60_000;
const timeoutMsDefault = 10_000;

type JobConnectionsOptions = {
  target: DatabaseTarget;
  /** How long a connection attempt may take, and how long PostgreSQL may be silent before it counts as unresponsive. */
  timeoutMs?: number | undefined;
  log: Logger;
};

/**
 * Connections of the driver that the job library requires. Like all others, they end if their server stops
 * responding.
 */
export class JobConnections {
  readonly target: DatabaseTarget;
  readonly #timeoutMs: number;
  readonly #log: Logger;
  readonly #watched = new Set<Client>();
  /** Idle connections in the pools. */
  readonly #free = new Set<Client>();
  readonly #silence: SilenceWatch;

  constructor({ target, timeoutMs = timeoutMsDefault, log }: JobConnectionsOptions) {
    this.target = target;
    this.#timeoutMs = timeoutMs;
    this.#log = log;
    const asking = { target, timeoutMs, applicationName: 'quarry-jobs', prepare: false };
    this.#silence = new SilenceWatch(asking, this.#watched, {
      onForgotten: () => this.#dropFree(),
    });
  }

  openPool(size: number): pg.Pool {
    const settings = settingsOf('quarry-jobs');
    const { target } = this;
    const timeoutMs = this.#timeoutMs;
    const watch = (client: Client) => this.#watch(client);
    // Each new connection goes to the server that is the primary at that time.
    class PooledClient extends Client {
      constructor() {
        super(target, settings, { timeoutMs });
        watch(this);
      }
    }
    const pool = new pg.Pool({ max: size, Client: PooledClient });
    const report = (error: Error) => this.#log.warn({ err: error }, 'Lost a database connection of the job queue');
    // Without a listener, either event would end the process. The library reconnects by itself.
    pool.on('error', report);
    pool.on('connect', (client) => client.on('error', report));
    pool.on('release', (_error, client) => this.#free.add(client as unknown as Client));
    pool.on('acquire', (client) => this.#free.delete(client as unknown as Client));
    pool.on('remove', (client) => this.#free.delete(client as unknown as Client));
    return pool;
  }

  /** Creates a separate client, not yet connected. */
  open(applicationName: string): Client {
    const client = new Client(this.target, settingsOf(applicationName), { timeoutMs: this.#timeoutMs });
    this.#watch(client);
    return client;
  }

  #dropFree(): void {
    for (const client of [...this.#free]) {
      this.#free.delete(client);
      // This makes the pool stop giving out the client. Its session ends later.
      client.emit('error', new Error('The network dropped another connection of the pool.'));
      client.destroy();
    }
  }

  #watch(client: Client): void {
    this.#watched.add(client);
    this.#silence.start();
    client.once('end', () => {
      this.#watched.delete(client);
      if (this.#watched.size === 0) this.#silence.stop();
    });
  }
}

function settingsOf(applicationName: string): pg.ClientConfig {
  return { application_name: applicationName, query_timeout: statementMsMax };
}
