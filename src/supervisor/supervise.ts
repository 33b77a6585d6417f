import cluster, { type ClusterSettings, type Worker } from 'node:cluster';
import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { type Config, ConfigError } from '../config/config.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../db/embedded.ts';
import { Metrics } from '../http/metrics.ts';
import type { Logger } from '../lib/log.ts';
import { programFile } from '../lib/program-file.ts';
import { FleetMetrics } from './fleet-metrics.ts';
import { forwardLines } from './lines.ts';
import type { Assignment, FromChild, FromSupervisor, Started } from './messages.ts';
import { closeWithProcess } from './passed-connections.ts';
import type { Plan } from './plan.ts';

export type Supervised = {
  /** The start message of the first process that serves requests, or else of the first worker. */
  started: Started;
  /** Resolves when the embedded database has exited. */
  databaseEnded: Promise<void>;
  close(): Promise<void>;
};

type Kind = 'http' | 'worker';
/** One planned process; `worker` is its current instance. */
type Slot = { name: string; kind: Kind; worker: Worker | undefined; failures: number; unanswered: number };

const restartMs = 250;
const restartMsMax = 10_000;
/** A process that ran for this long has recovered. */
const recoveredMs = 60_000;
/** Within the ten seconds of a stop; PostgreSQL stops after it. */
const childStopMs = 8_300;
const measureMs = 3_000;
/** A process that has left so many questions in a row without a reply hangs. */
const lookMs = 5_000;
const unansweredMax = 12;
const databaseConnectionsMin = 200;
const connectionsOfHttp = 4;
const connectionsOfWorker = 10;
const connectionsOfOthers = 20;

/** Starts the embedded PostgreSQL and the planned processes, and restarts a process that ends. */
export async function supervise(config: Config, log: Logger, plan: Plan): Promise<Supervised> {
  const supervisor = new Supervisor(config, log, plan);
  try {
    return await supervisor.start();
  } catch (error) {
    await supervisor.close();
    throw error;
  }
}

/** A process did not start. It has logged the reason itself. */
class ChildStartError extends Error {}

class Supervisor {
  #config: Config;
  readonly #log: Logger;
  readonly #plan: Plan;
  readonly #slots: Slot[] = [];
  readonly #fleet = new FleetMetrics();
  readonly #own = new Metrics();
  readonly #restarts = this.#own.counter('quarry_process_restarts_total', restartsHelp, ['kind']);
  readonly #stopping = new AbortController();
  #embedded: EmbeddedPostgres | undefined;
  #url: string | undefined;
  #measuring: Promise<string | undefined> | undefined;
  #closed: Promise<void> | undefined;

  constructor(config: Config, log: Logger, plan: Plan) {
    this.#config = config;
    this.#log = log;
    this.#plan = plan;
    this.#own.gauges('quarry_processes', processesHelp, async () =>
      kinds.map((kind) => ({ labels: { kind, state: 'running' }, value: this.#connected(kind).length })),
    );
  }

  async start(): Promise<Supervised> {
    if (this.#config.databaseUrl === undefined)
      this.#embedded = await startEmbeddedPostgres({
        dataDir: this.#config.dataDir,
        log: this.#log,
        settings: { max_connections: String(connectionsNeeded(this.#config, this.#plan)) },
      });
    this.#config = await choosePorts(this.#config);
    cluster.setupPrimary({
      exec: programFile('../main', import.meta.url),
      args: ['serve'],
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    } as ClusterSettings);
    for (const kind of kinds)
      for (let i = 1; i <= this.#plan[kind]; i++)
        this.#slots.push({ name: `${kind} ${i}`, kind, worker: undefined, failures: 0, unanswered: 0 });
    const looking = setInterval(() => this.#look(), lookMs);
    this.#stopping.signal.addEventListener('abort', () => clearInterval(looking));
    const [first, ...others] = this.#slots;
    if (first === undefined) throw new ConfigError(['no process is planned']);
    // The first one migrates the database and creates the credentials.
    const started = await this.#run(first);
    this.#url = started.url;
    await Promise.all(others.map((slot) => this.#run(slot)));
    return {
      started,
      databaseEnded: this.#embedded?.ended ?? new Promise(() => {}),
      close: () => this.close(),
    };
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#stopping.abort();
    const workers = this.#slots.flatMap(({ worker }) => (worker === undefined ? [] : [worker]));
    const ended = workers.map((worker) => new Promise<void>((resolve) => worker.once('exit', () => resolve())));
    for (const worker of workers) tell(worker, { type: 'stop' });
    const late = setTimeout(() => {
      for (const worker of workers) worker.process.kill('SIGKILL');
    }, childStopMs);
    await Promise.all(ended);
    clearTimeout(late);
    await this.#embedded?.stop();
  }

  /** Starts a process and resolves when it serves. It is restarted whenever it ends after that. */
  #run(slot: Slot): Promise<Started> {
    const worker = cluster.fork();
    closeWithProcess(worker);
    slot.worker = worker;
    slot.unanswered = 0;
    const { pid = 0, stderr } = worker.process;
    const beganAt = performance.now();
    const outcome = Promise.withResolvers<Started>();
    let hasStarted = false;
    if (stderr) forwardLines(stderr, (lines) => process.stderr.write(lines));
    worker.on('error', (error) => this.#log.warn({ err: error, process: slot.name }, 'Lost contact with a process'));
    worker.on('message', (message: FromChild) => {
      slot.unanswered = 0;
      if (message.type === 'started') {
        hasStarted = true;
        this.#log.info({ process: slot.name, childPid: pid }, 'Process started');
        outcome.resolve(message.started);
      } else if (message.type === 'measured') this.#fleet.keep(pid, message.snapshot);
      else if (message.type === 'read-metrics')
        void this.#measure().then((text) => tell(worker, { type: 'metrics', text }));
    });
    worker.once('exit', (code, signal) => {
      slot.worker = undefined;
      void this.#fleet.end(pid);
      if (!hasStarted) outcome.reject(new ChildStartError(`The process ${slot.name} did not start.`));
      if (this.#stopping.signal.aborted) return;
      this.#log.warn({ process: slot.name, childPid: pid, code, signal }, 'Process ended');
      slot.failures = performance.now() - beganAt > recoveredMs ? 1 : slot.failures + 1;
      if (hasStarted) void this.#restart(slot);
    });
    tell(worker, { type: 'start', assignment: this.#assign(slot.kind) });
    return outcome.promise;
  }

  /**
   * Kills a process that hangs, so that another takes its place. What counts is questions and not time: a machine that
   * was suspended asks none meanwhile.
   */
  #look(): void {
    for (const slot of this.#slots) {
      const { name, worker, unanswered } = slot;
      if (worker === undefined) continue;
      slot.unanswered += 1;
      if (unanswered < unansweredMax) tell(worker, { type: 'look' });
      else {
        this.#log.error(
          { process: name, childPid: worker.process.pid },
          'A process has not replied for a minute: it is killed',
        );
        worker.process.kill('SIGKILL');
      }
    }
  }

  async #restart(slot: Slot): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await wait(Math.min(restartMs * 2 ** (slot.failures - 1), restartMsMax), undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      this.#restarts.inc({ kind: slot.kind });
      try {
        await this.#run(slot);
        return;
      } catch {
        // The process has logged the reason. The next attempt waits longer.
      }
    }
  }

  #assign(kind: Kind): Assignment {
    const { role, parseWorkers, ...config } = this.#config;
    const listens = kind === 'http' || role === 'worker';
    return {
      config: {
        ...config,
        role: kind,
        parseWorkers: Math.ceil(parseWorkers / this.#plan[kind]),
        metricsPort: listens ? config.metricsPort : undefined,
      },
      database: this.#embedded?.address,
      listeningUrl: listens ? undefined : this.#url,
    };
  }

  /** Adds up the metrics of all processes. Of a process that does not reply in time, the last reply counts. */
  #measure(): Promise<string | undefined> {
    this.#measuring ??= this.#collect()
      .catch((error: unknown) => {
        this.#log.error({ err: error }, 'The metrics could not be collected');
        return undefined;
      })
      .finally(() => {
        this.#measuring = undefined;
      });
    return this.#measuring;
  }

  async #collect(): Promise<string> {
    const inTime = AbortSignal.timeout(measureMs);
    const workers = kinds.flatMap((kind) => this.#connected(kind));
    await Promise.all(
      workers.map(
        (worker) =>
          new Promise<void>((resolve) => {
            inTime.addEventListener('abort', () => resolve(), { once: true });
            worker.once('exit', () => resolve());
            worker.on('message', function hear(message: FromChild) {
              if (message.type !== 'measured') return;
              worker.off('message', hear);
              resolve();
            });
            tell(worker, { type: 'measure' });
          }),
      ),
    );
    this.#fleet.keep(process.pid, await this.#own.registry.getMetricsAsJSON());
    return this.#fleet.text();
  }

  #connected(kind: Kind): Worker[] {
    return this.#slots.flatMap(({ kind: of, worker }) => (of === kind && worker?.isConnected() ? [worker] : []));
  }
}

const kinds: Kind[] = ['http', 'worker'];
const restartsHelp = 'Processes that the supervisor restarted';
const processesHelp = 'Processes of this server by kind';

function tell(worker: Worker, message: FromSupervisor): void {
  // A process that has ended needs no message: its `exit` event is handled separately.
  if (worker.isConnected()) worker.process.send(message, undefined, undefined, () => {});
}

function connectionsNeeded({ databasePoolSize }: Config, { http, worker }: Plan): number {
  const needed = http * (databasePoolSize + connectionsOfHttp) + worker * (databasePoolSize + connectionsOfWorker);
  return Math.max(databaseConnectionsMin, needed + connectionsOfOthers);
}

/** All processes listen on the same ports, even after a restart. */
async function choosePorts(config: Config): Promise<Config> {
  const choose = async (port: number) => port || (await findFreePort(config.host));
  const [port, workerPort] = [await choose(config.port), await choose(config.workerPort)];
  return {
    ...config,
    port,
    workerPort,
    metricsPort: config.metricsPort === undefined ? undefined : await choose(config.metricsPort),
  };
}

function findFreePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject).listen({ host, port: 0 }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
