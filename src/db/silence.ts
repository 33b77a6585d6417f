import { Connection, type ConnectionOptions } from './connection.ts';
import { ConnectionError } from './errors.ts';

/** A connection to watch. Its progress changes with every byte, and is undefined while no statement runs. */
type Watched = Pick<Connection, 'processId' | 'progress' | 'destroy'>;

type Findings = {
  /** Called if the server responds on no connection. The silent connections have been ended. */
  onUnresponsive?(error: ConnectionError): void;
  /**
   * Called when the network has dropped a connection, and perhaps all others that were idle; before the statement
   * fails.
   */
  onForgotten?(): void;
};

/**
 * Ends connections whose server no longer responds. A statement may take long, so silence alone ends no connection:
 * after `timeoutMs` of silence, a new connection asks the server, within the same time, whether it still works on the
 * statement.
 */
export class SilenceWatch {
  readonly #options: ConnectionOptions;
  readonly #connections: ReadonlySet<Watched>;
  readonly #findings: Findings;
  #timer: NodeJS.Timeout | undefined;
  #seen = new Map<Watched, { progress: number; checks: number }>();
  /** Silent connections that the server did not work for at the last check. A result may have been on its way. */
  #idle = new Set<Watched>();
  #isChecking = false;

  constructor(options: ConnectionOptions, connections: ReadonlySet<Watched>, findings: Findings) {
    this.#options = options;
    this.#connections = connections;
    this.#findings = findings;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#check(), this.#options.timeoutMs / checksPerTimeout).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#seen.clear();
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    const silent = this.#findSilent();
    if (silent.length === 0) return;
    this.#isChecking = true;
    try {
      const working = await this.#askServer(silent);
      const idle = silent.filter(({ processId }) => working !== undefined && !working.has(processId));
      const forgotten = idle.filter((connection) => this.#idle.has(connection) && this.#isSilent(connection));
      if (forgotten.length > 0) this.#findings.onForgotten?.();
      for (const connection of forgotten) connection.destroy();
      this.#idle = new Set(idle);
    } catch (error) {
      // A server that refuses the connection or the query does respond.
      if (!(error instanceof ConnectionError)) return;
      for (const connection of silent) if (this.#isSilent(connection)) connection.destroy();
      this.#findings.onUnresponsive?.(error);
    } finally {
      this.#isChecking = false;
    }
  }

  /** Connections that run a statement and have exchanged nothing for `checksPerTimeout` checks. */
  #findSilent(): Watched[] {
    const before = this.#seen;
    this.#seen = new Map();
    for (const connection of this.#connections) {
      const { progress } = connection;
      if (progress === undefined) continue;
      const last = before.get(connection);
      this.#seen.set(connection, { progress, checks: last?.progress === progress ? last.checks + 1 : 0 });
    }
    return [...this.#seen].filter(([, { checks }]) => checks >= checksPerTimeout).map(([connection]) => connection);
  }

  #isSilent(connection: Watched): boolean {
    return this.#seen.get(connection)?.progress === connection.progress;
  }

  /** The server processes that work for these connections, or undefined behind a pooler, which hides them. */
  async #askServer(silent: Watched[]): Promise<Set<number> | undefined> {
    const asking = await Connection.open({ ...this.#options, prepare: false }, () => {});
    const timer = setTimeout(() => asking.destroy(), this.#options.timeoutMs);
    try {
      const [row] = await asking.execute(workingProcesses(silent.map(({ processId }) => processId)));
      return row?.own === asking.processId ? new Set(row.working as number[]) : undefined;
    } finally {
      clearTimeout(timer);
      if (!asking.isLost) void asking.close().catch(() => {});
    }
  }
}

const checksPerTimeout = 2;

const strings = Object.assign(['select working processes'], { raw: ['select working processes'] });

/** A server process that waits for its client has neither received a statement nor sent the whole result. */
function workingProcesses(processes: number[]) {
  const text = `select pg_backend_pid() as own, array(select pid from pg_stat_activity where pid = any ($1::integer[])
    and coalesce(state, '') not like 'idle%' and wait_event is distinct from 'ClientWrite') as working`;
  return { text, values: [processes], types: [1007], strings };
}
