import type { Socket } from 'node:net';
import pg from 'pg';
import { type DatabaseTarget, pgConnection } from './address.ts';
import { ConnectionError, DatabaseError } from './errors.ts';
import { type Servers, serversOf } from './servers.ts';

const connectTimeoutMs = 10_000;
/** With several servers, an unresponsive one must not delay the next. */
const connectTimeoutOfManyMs = 2_000;
/** How long a connection may be silent before the system checks whether the other side still exists. */
const keepAliveMs = 10_000;
const endMsMax = 1_000;
/**
 * The same check by the database server. By default, its system takes two hours to notice that the machine of an idle
 * session has lost power, or a quarter of an hour if a response is not acknowledged. Until then, the session keeps
 * its locks. No effect on a Unix socket.
 */
const noticeDeadMachine = `set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3;
  set tcp_user_timeout = 30000`;

type ClientOptions = {
  timeoutMs?: number;
  /** Whether the server is a transaction pooler: settings of a session would reach any of its connections. */
  behindPooler?: boolean;
};

/**
 * A session of the `pg` driver with the current server of a target. If the server cannot be reached or is read-only,
 * `connect` fails, and the next client of the same target tries the next server.
 */
export class Client extends pg.Client {
  readonly #servers: Servers | undefined;
  readonly #url: string | undefined;
  readonly #behindPooler: boolean;
  readonly #readOnly = new Map<string, boolean>();

  constructor(
    target: DatabaseTarget,
    settings: pg.ClientConfig,
    { timeoutMs = connectTimeoutMs, behindPooler = false }: ClientOptions = {},
  ) {
    const servers = typeof target === 'string' ? serversOf(target) : undefined;
    const many = (servers?.urls.length ?? 1) > 1;
    super({
      connectionTimeoutMillis: many ? Math.min(connectTimeoutOfManyMs, timeoutMs) : timeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      ...settings,
      ...pgConnection(servers?.current ?? target),
    });
    this.#servers = servers;
    this.#url = servers?.current;
    this.#behindPooler = behindPooler;
    (this as unknown as Driver).connection.on(
      'parameterStatus',
      ({ parameterName: name, parameterValue: value }: ParameterStatus) => {
        if (readOnlyParameters.has(name)) this.#readOnly.set(name, value === 'on');
      },
    );
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    const connected = this.#connect();
    if (callback === undefined) return connected;
    connected.then(() => (callback as () => void)(), callback);
    return undefined;
  }

  /** The id of the server process, or the number that a pooler gives instead. */
  get processId(): number {
    return (this as unknown as Driver).processID;
  }

  /** How many bytes have been exchanged with the server. */
  get exchangedBytes(): number {
    const { bytesRead, bytesWritten, writableLength, _handle } = this.#stream;
    return bytesRead + bytesWritten - (_handle?.writeQueueSize ?? writableLength);
  }

  /** Changes with every byte that is exchanged; undefined while no statement runs. Not for pipelined connections. */
  get progress(): number | undefined {
    return (this as unknown as Driver)._getActiveQuery() === null ? undefined : this.exchangedBytes;
  }

  get #stream(): Stream {
    return (this as unknown as Driver).connection.stream;
  }

  /** Ends the session immediately. Running statements fail. */
  destroy(): void {
    this.#stream.destroy();
  }

  /** Ends the session. An unresponsive network delays this by at most a second. */
  async endSoon(): Promise<void> {
    const timer = setTimeout(() => this.destroy(), endMsMax);
    await this.end().catch(() => {});
    clearTimeout(timer);
  }

  async #connect(): Promise<pg.Client> {
    try {
      await super.connect();
      if (this.#servers?.needsPrimary && [...this.#readOnly.values()].includes(true)) {
        await this.end();
        throw new ConnectionError('READ_ONLY_SERVER', 'None of the servers in DATABASE_URL accepts writes.');
      }
    } catch (error) {
      if (this.#url !== undefined) this.#servers?.leave(this.#url);
      throw error;
    }
    // Sent before the first statement, which reports the error if the session is lost by then.
    if (!this.#behindPooler && !this.host.startsWith('/')) this.query(noticeDeadMachine).catch(() => {});
    return this;
  }
}

/** Tries each server of the target once, starting with the current one. */
export async function tryServers<T>(target: DatabaseTarget, connect: () => Promise<T>): Promise<T> {
  for (let left = typeof target === 'string' ? serversOf(target).urls.length : 1; ; left--) {
    try {
      return await connect();
    } catch (error) {
      if (left === 1 || isWrongLogin(error)) throw error;
    }
  }
}

/** The socket. Its handle counts the bytes that the system has not taken yet. */
type Stream = Pick<Socket, 'bytesRead' | 'bytesWritten' | 'writableLength' | 'destroy'> & {
  _handle?: { writeQueueSize?: number } | null;
};

/** The parts of `pg` that have no type definitions. */
type Driver = {
  connection: NodeJS.EventEmitter & { stream: Stream };
  processID: number;
  _getActiveQuery(): object | null;
};

type ParameterStatus = { parameterName: string; parameterValue: string };

/** PostgreSQL reports these parameters when a session begins. */
const readOnlyParameters = new Set(['in_hot_standby', 'default_transaction_read_only']);

/** The user, password or database is wrong, and would be wrong on every other server. */
function isWrongLogin(error: unknown): boolean {
  return error instanceof DatabaseError && /^(28|3D)/.test(error.code ?? '');
}
