import pg from 'pg';
import { freeSingleUse, isFreed } from '../lib/single-use-bytes.ts';
import type { DatabaseTarget } from './address.ts';
import { bindInParts } from './bind.ts';
import { Client, tryServers } from './client.ts';
import { ConnectionError, DatabaseError } from './errors.ts';
import { type Compiled, type Result, type Row, toCamel, withOrigin } from './sql.ts';
import { parserOf, serialize } from './values.ts';
import { wholeMessagesOf } from './whole-messages.ts';

export type ConnectionOptions = {
  target: DatabaseTarget;
  applicationName: string;
  /** Whether statements are prepared by name, once per connection. Some transaction poolers do not support this. */
  prepare: boolean;
  /** Whether the server is a transaction pooler. */
  behindPooler?: boolean;
  /** How long to wait for a new connection, and how long its server may be silent before `SilenceWatch` checks it. */
  timeoutMs: number;
};

/** The number of statements that stay prepared on a connection. Others are prepared at each run. */
const preparedMax = 1_000;

type Column = { name: string; parse: ((text: string) => unknown) | undefined };
/** A prepared statement of a connection. Its columns are known after the first run. */
type Prepared = { name: string; columns: Column[] | undefined };

/**
 * One session with PostgreSQL, through the `pg` driver. Statements are pipelined: each is sent without waiting for
 * the previous one, and gets its own rows or error.
 */
export class Connection {
  readonly #client: Client;
  readonly #prepare: boolean;
  readonly #prepared = new Map<string, Prepared>();
  readonly openedAt = performance.now();
  #lost: Error | undefined;
  #isEnding = false;
  /** The number of statements without a response yet. */
  #running = 0;
  /** Whether statements are gathered until the end of this turn. */
  #isGathering = false;

  private constructor({ target, applicationName, prepare, timeoutMs, behindPooler = false }: ConnectionOptions) {
    this.#prepare = prepare;
    const settings = { application_name: applicationName, pipeline: true };
    this.#client = new Client(target, settings as pg.ClientConfig, { timeoutMs, behindPooler });
    const wire = this.#wire;
    const attach = wire.attachListeners.bind(wire);
    wire.attachListeners = (stream) => attach(wholeMessagesOf(stream));
  }

  /** @param onLost is called once if the session ends without `close` */
  static open(options: ConnectionOptions, onLost: () => void): Promise<Connection> {
    return tryServers(options.target, () => Connection.#open(options, onLost));
  }

  static async #open(options: ConnectionOptions, onLost: () => void): Promise<Connection> {
    const connection = new Connection(options);
    let isOpen = false;
    const lose = (error: Error) => {
      if (connection.#lost !== undefined) return;
      connection.#lost = error;
      if (isOpen) onLost();
    };
    connection.#client.on('error', lose);
    connection.#client.on('end', () => lose(new Error('Connection terminated')));
    try {
      await connection.#client.connect();
    } catch (error) {
      throw ConnectionError.from(error);
    }
    isOpen = true;
    return connection;
  }

  get isLost(): boolean {
    return this.#lost !== undefined || this.#isEnding;
  }

  /** The id of the server process, or the number that a pooler gives instead. */
  get processId(): number {
    return this.#client.processId;
  }

  /** Changes with every byte that is exchanged; undefined while no statement runs. */
  get progress(): number | undefined {
    return this.#running === 0 ? undefined : this.#client.exchangedBytes;
  }

  /** Runs a statement. Throws DatabaseError if PostgreSQL refuses it, ConnectionError if the session is lost. */
  execute({ text, values, types, strings, once, onSent, onCopied }: Compiled): Promise<Result<Row[]>> {
    const serialized = values.map(serialize);
    // Otherwise, a statement that is repeated after it has run would write nothing in place of its bytes.
    if (serialized.some((value) => Buffer.isBuffer(value) && isFreed(value)))
      throw new Error('A value of the statement was freed.');
    return new Promise((resolve, reject) => {
      const prepared = this.#prepare && !once ? this.#findPrepared(text) : undefined;
      const query = new Execution({ text, values: serialized, types, prepared, onCopied }, (error, rows) => {
        this.#running -= 1;
        if (rows !== undefined) {
          for (const value of serialized) if (Buffer.isBuffer(value)) freeSingleUse(value);
          return resolve(rows);
        }
        if (prepared !== undefined && !query.isParsed) this.#prepared.delete(text);
        if (endsSession(error)) this.#isEnding = true;
        reject(withOrigin(ConnectionError.fromDriver(error), strings));
      });
      this.#running += 1;
      this.#gather();
      this.#client.query(query as unknown as pg.Submittable);
      onSent?.();
    });
  }

  /** Prepares the statement under a new name at its next run. */
  forget(text: string): void {
    this.#prepared.delete(text);
    names.delete(text);
  }

  /** Runs SQL without values, possibly several statements. Returns the command tag of the last one. */
  async runScript(text: string): Promise<string> {
    this.#running += 1;
    this.#gather();
    try {
      const results = (await this.#client.query(text)) as pg.QueryResult | pg.QueryResult[];
      return (Array.isArray(results) ? results.at(-1) : results)?.command ?? '';
    } catch (error) {
      throw ConnectionError.fromDriver(error);
    } finally {
      this.#running -= 1;
    }
  }

  onNotification(hear: (channel: string, payload: string) => void): void {
    this.#client.on('notification', ({ channel, payload }) => hear(channel, payload ?? ''));
  }

  /** Ends the session when the running statements are complete. */
  async close(): Promise<void> {
    this.#lost ??= new Error('Connection ended');
    await this.#client.end();
  }

  /** Ends the session immediately. Running statements fail. */
  destroy(): void {
    this.#client.destroy();
  }

  get #wire(): Wire {
    return (this.#client as unknown as { connection: Wire }).connection;
  }

  /** Sends the statements of one turn in one system call, which costs as much as one of them. */
  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    const { stream } = this.#wire;
    stream.cork();
    process.nextTick(() => {
      this.#isGathering = false;
      stream.uncork();
    });
  }

  #findPrepared(text: string): Prepared | undefined {
    const known = this.#prepared.get(text);
    if (known !== undefined || this.#prepared.size >= preparedMax) return known;
    const prepared = { name: nameOf(text), columns: undefined };
    this.#prepared.set(text, prepared);
    return prepared;
  }
}

/**
 * PostgreSQL sends these before it closes the connection: on shutdown, or when it terminates the session. A server
 * that refuses writes (25006) is not the primary, or not yet.
 */
function endsSession(error: unknown): boolean {
  return error instanceof DatabaseError && /^(57P0\d|25P03|25006|08...)$/.test(error.code ?? '');
}

/** Unique to this process, because behind a pooler, connections are shared with other processes. */
const namePrefix = `q${crypto.randomUUID().slice(0, 8)}_`;
const names = new Map<string, string>();
let namesCount = 0;

function nameOf(text: string): string {
  const known = names.get(text);
  if (known !== undefined) return known;
  const name = `${namePrefix}${++namesCount}`;
  if (names.size < preparedMax) names.set(text, name);
  return name;
}

/** The parts of `pg` that have no type definitions: the wire connection, and the methods that it calls on a query. */
type Wire = {
  stream: { writable: boolean; cork(): void; uncork(): void; write(bytes: Uint8Array): void };
  parsedStatements: Record<string, string | undefined>;
  submittedNamedStatements: Record<string, string | undefined>;
  parse(message: { name: string; text: string; types: readonly number[] }): void;
  bind(message: { statement: string; values: readonly (string | Buffer | null)[] }): void;
  describe(message: { type: 'P' }): void;
  execute(message: object): void;
  sync(): void;
  sendCopyFail(reason: string): void;
  attachListeners(source: Parameters<typeof wholeMessagesOf>[0]): void;
};
type Field = { name: string; dataTypeID: number };
type Done = (error: unknown, rows?: Result<Row[]>) => void;
type ExecutionConfig = {
  text: string;
  values: readonly (string | Buffer | null)[];
  types: readonly number[];
  prepared: Prepared | undefined;
  onCopied: Compiled['onCopied'];
};

const DriverQuery = pg.Query as unknown as new (config: object) => { name: string | undefined };

/**
 * A submitted statement. Replaces the driver's own query: it requests the columns of a prepared statement only once,
 * and builds each row from their names and types.
 */
class Execution extends DriverQuery {
  readonly #config: ExecutionConfig;
  readonly #done: Done;
  #wire: Wire | undefined;
  #columns: Column[] | undefined;
  #rows: Row[] = [];
  #count = 0;
  #failure: { error: unknown } | undefined;

  constructor(config: ExecutionConfig, done: Done) {
    super({ text: config.text });
    this.#config = config;
    this.#done = done;
    this.name = config.prepared?.name;
    Object.assign(this, { callback: done });
  }

  /** Whether the session has prepared the statement. */
  get isParsed(): boolean {
    return this.name !== undefined && this.#wire?.parsedStatements[this.name] !== undefined;
  }

  submit(wire: Wire): null {
    const { text, values, types, prepared } = this.#config;
    const name = this.name ?? '';
    this.#wire = wire;
    this.#columns = prepared?.columns;
    const isKnown = name !== '' && (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name]) !== undefined;
    wire.stream.cork();
    try {
      if (!isKnown) {
        wire.parse({ name, text, types });
        if (name !== '') wire.submittedNamedStatements[name] = text;
      }
      const parts = bindInParts(name, values);
      if (parts === undefined) wire.bind({ statement: name, values });
      else if (wire.stream.writable) for (const part of parts) wire.stream.write(part);
      if (this.#columns === undefined) wire.describe({ type: 'P' });
      wire.execute({});
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
    return null;
  }

  handleRowDescription({ fields }: { fields: Field[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name: toCamel(name), parse: parserOf(dataTypeID) }));
    if (this.#config.prepared) this.#config.prepared.columns = this.#columns;
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    if (this.#failure !== undefined) return;
    const columns = this.#columns ?? this.#config.prepared?.columns ?? [];
    const row: Row = {};
    try {
      for (let i = 0; i < columns.length; i++) {
        const { name, parse } = columns[i] as Column;
        const text = fields[i] as string | null;
        row[name] = text === null || parse === undefined ? text : parse(text);
      }
    } catch (error) {
      this.#failure = { error };
      return;
    }
    this.#rows.push(row);
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#count = Number(/\d+$/.exec(text)?.[0] ?? 0);
  }

  handleError(error: unknown): void {
    this.#done(error);
  }

  handleReadyForQuery(): void {
    if (this.#failure !== undefined) this.#done(this.#failure.error);
    else this.#done(undefined, Object.assign(this.#rows, { count: this.#count }));
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}

  handleCopyInResponse(wire: Wire): void {
    wire.sendCopyFail('COPY is not supported.');
  }

  handleCopyData({ chunk }: { chunk: Buffer }): void {
    if (this.#failure !== undefined) return;
    try {
      this.#config.onCopied?.(chunk);
    } catch (error) {
      this.#failure = { error };
    }
  }
}
