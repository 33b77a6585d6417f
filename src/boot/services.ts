import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Expressions } from '../automations/engine/expressions.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import { type Config, runsJobs } from '../config/config.ts';
import type { Renderer } from '../content/browser/renderer.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Resolver } from '../content/fetch/resolver.ts';
import { ParserPool } from '../content/parse/pool/pool.ts';
import type { DatabaseTarget } from '../db/address.ts';
import { type Database, openDatabase, type ReplicaOutcome } from '../db/database.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../db/embedded.ts';
import { migrate, readMigrations } from '../db/migrate.ts';
import { matchBlobStore } from '../files/store-identity.ts';
import { Metrics } from '../http/metrics.ts';
import { StreamHub } from '../http/streams/sse.ts';
import { createExternalUsers } from '../identity/external-users.ts';
import type { IssuerKeys } from '../identity/issuer-keys.ts';
import { createTrial } from '../jobs/trial.ts';
import { startWorkers, type Workers, type WorkersOptions } from '../jobs/workers.ts';
import type { ComputingThreads } from '../knowledge/computing/threads.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { createDirectories } from '../lib/directories.ts';
import { limits } from '../lib/limits.ts';
import type { Logger } from '../lib/log.ts';
import { writePrivateFile } from '../lib/private-file.ts';
import { programFile } from '../lib/program-file.ts';
import type { Timeouts } from '../lib/timeouts.ts';
import { createSettlements, type Settlements } from '../llm/settlements.ts';
import { loadUserCallers } from '../tenancy/callers.ts';
import { Credentials } from '../tenancy/credentials.ts';
import { Secrets } from '../tenancy/secrets.ts';
import { Sessions } from '../tenancy/sessions.ts';
import { startTracing } from '../tracing/start.ts';
import { saveDefaultLimits } from '../usage/store.ts';
import { type ProcessParts, startProcessParts } from './process-parts.ts';

/**
 * The shared services of one database, created once: those of the process, or of each of its cells. Routes and domain
 * services take the ones they need.
 */
export type Services = {
  config: Config;
  log: Logger;
  clock: Clock;
  metrics: Metrics;
  /** The connection target of `db`. */
  target: DatabaseTarget;
  db: Database;
  /** The database of developers and their tokens, and of what is counted in all cells: `db`, unless there are cells. */
  directory: Database;
  /** What all cells of the process share. */
  process: ProcessParts;
  /** The target of connections without a transaction pooler, for LISTEN and session locks. */
  directTarget: DatabaseTarget;
  direct: Database;
  /** The number of this release's last migration. */
  schemaVersion: number;
  /** A single connection, for advisory locks that outlive a statement. */
  session: Database;
  blobs: BlobStore;
  parser: ParserPool;
  /** The only client for URLs that come from outside. */
  fetcher: Fetcher;
  /** Resolves host names, for the fetcher and for the services that the settings name. */
  resolve: Resolver;
  /** Renders pages that need a browser. Undefined unless configured. */
  renderer?: Renderer | undefined;
  /** The public keys of issuers of external identities. */
  issuerKeys: IssuerKeys;
  /** Event streams of changes. */
  streams: StreamHub;
  secrets: Secrets;
  credentials: Credentials;
  /** Sessions of the web console. */
  sessions: Sessions;
  /** What calls of models have used, until it is written. */
  settlements: Settlements;
  /** The base URL for clients, without a trailing slash. */
  baseUrl(): string;
  /** The base URL of file contents: the same as `baseUrl`, unless QUARRY_CONTENT_ORIGIN is set. */
  contentUrl(): string;
  /** Sets the URL that the server listens on, which is its base URL unless the settings name another. */
  setListeningUrl(url: string): void;
  /** Starts to run these background jobs. Call it when the server listens. */
  startWorkers(work: Pick<WorkersOptions, 'tasks' | 'recurring' | 'urgentWork'>): Promise<void>;
  /** Finishes or releases the running jobs. `close()` calls it, too. */
  stopWorkers(): Promise<void>;
  /** True when everything that a request may need is available. */
  isReady(): boolean;
  setReady(): void;
  /** Resolves when the embedded database has exited. Never resolves with an external one. */
  databaseEnded: Promise<void>;
  /** Stops everything in reverse order. Safe to call repeatedly. */
  close(): Promise<void>;
};

export type ServicesOptions = {
  /** A running database. Default: the configured or the embedded database. */
  database?: DatabaseTarget;
  /** The same database without a pooler, if `database` is behind one. */
  directDatabase?: DatabaseTarget | undefined;
  /** The embedded database, if it is already starting. It is stopped with the services. */
  embedded?: Promise<EmbeddedPostgres> | undefined;
  clock?: Clock;
  /** Replaces the system's resolver in tests. */
  resolve?: Resolver | undefined;
  /** Replaces the usual times in tests. */
  timeouts?: Readonly<Timeouts> | undefined;
  metrics?: Metrics;
  /** Running parsers, which the caller closes. By default, the services start and close their own. */
  parser?: ParserPool | undefined;
  /** Running processes for expressions, which the caller closes. By default, the services start their own. */
  expressions?: Expressions | undefined;
  /** Threads for searches, as `expressions`. */
  threads?: ComputingThreads | undefined;
  /** The URL where other processes on this machine serve requests, for a process that does not listen. */
  listeningUrl?: string;
  /** The name of the cell, as a label of its metrics. */
  cell?: string | undefined;
  /** For a further cell: the services of the process, which has the directory. */
  home?: Services | undefined;
};

/**
 * Starts the configured services: database, migrations, blobs, keys, parsers, jobs. If one fails to start, stops
 * those already started and throws.
 */
export async function createServices(config: Config, log: Logger, options: ServicesOptions = {}): Promise<Services> {
  const started = new Started(log);
  try {
    return await start(config, log, options, started);
  } catch (error) {
    await started.end();
    throw error;
  }
}

async function start(config: Config, log: Logger, options: ServicesOptions, started: Started): Promise<Services> {
  const clock = options.clock ?? systemClock;
  const { home } = options;
  const metricsOfProcess = options.metrics ?? home?.process.metrics ?? new Metrics();
  const metrics = options.cell === undefined ? metricsOfProcess : new Metrics({ cell: options.cell });
  if (metrics !== metricsOfProcess) started.add('metrics', async () => forgetMetrics());
  const forgetMetrics = metrics === metricsOfProcess ? () => {} : metricsOfProcess.addCell(metrics);
  const embedded = await startDatabase(config, log, options, started);
  const stopTracing = home === undefined ? startTracing(config, log) : undefined;
  if (stopTracing !== undefined) started.add('tracing', stopTracing);
  const target = embedded?.address ?? options.database ?? config.databaseUrl;
  if (target === undefined) throw new Error('No database is configured.');
  const directTarget =
    options.directDatabase ?? (options.database === undefined ? config.databaseDirectUrl : undefined) ?? target;

  const { db, direct, session, schemaVersion } = await openDatabases(
    { config, log, metrics },
    { target, directTarget },
    started,
  );
  const onStarted = (name: string, end: () => Promise<unknown>) => started.add(name, end);
  const process =
    home?.process ??
    (await startProcessParts(config, log, {
      ...{ clock, metrics: metricsOfProcess, onStarted },
      ...{ parser: options.parser, expressions: options.expressions, threads: options.threads },
      ...{ resolve: options.resolve, timeouts: options.timeouts },
    }));
  const { blobs, parser, resolve, fetcher, renderer, issuerKeys } = process;
  await matchBlobStore(direct, blobs);
  const secrets = new Secrets(config.secret ?? readOrCreateSecret(config.dataDir), config.secretPrevious);
  const directory = home?.db ?? openDirectory(config, options, started) ?? db;
  const external = createExternalUsers({ db, clock, keys: issuerKeys, baseUrl: () => services.baseUrl() });
  const credentials = new Credentials({ db, directory, secrets, clock, external });
  const streams = await startStreams({ config, log, clock, db, direct, home, process, credentials }, started);
  const services = assemble({
    config,
    log,
    clock,
    metrics,
    target,
    db,
    directory,
    home,
    process,
    directTarget,
    direct,
    session,
    ...{ blobs, parser, fetcher, resolve, renderer, issuerKeys },
    streams,
    secrets,
    credentials,
    started,
    schemaVersion,
    databaseEnded: embedded?.ended ?? new Promise(() => {}),
  });
  if (options.listeningUrl !== undefined) services.setListeningUrl(options.listeningUrl);
  return services;
}

/** Opens the pools of a database, and brings its tables up to this release. */
async function openDatabases(
  { config, log, metrics }: Pick<Services, 'config' | 'log' | 'metrics'>,
  { target, directTarget }: Pick<Services, 'target' | 'directTarget'>,
  started: Started,
): Promise<Pick<Services, 'db' | 'direct' | 'session' | 'schemaVersion'>> {
  const prepare = config.prepare === 'on';
  const timeoutMs = config.databaseTimeoutSeconds * 1_000;
  const db = openDatabase(target, {
    poolSize: config.databasePoolSize,
    applicationName: 'quarry',
    prepare,
    timeoutMs,
    behindPooler: directTarget !== target,
    replica: findReplica(config, metrics),
  });
  started.add('database connections', () => db.end({ timeout: databaseEndSeconds }));
  const direct = openDatabase(directTarget, { poolSize: directPoolSize, applicationName: 'quarry-direct', timeoutMs });
  started.add('direct database connections', () => direct.end({ timeout: databaseEndSeconds }));
  const migrations = await readMigrations();
  const applied = await migrate(direct, migrations);
  if (applied.length > 0) log.info({ migrations: applied.length, last: applied.at(-1) }, 'Migrations applied');
  await saveDefaultLimits(direct, {
    file_bytes: config.quotaFileBytes || undefined,
    documents: config.quotaDocuments || undefined,
    pages: config.quotaPagesPerDay || undefined,
    tokens: config.quotaTokensPerDay || undefined,
    sandboxes: config.quotaSandboxes || undefined,
  });

  const session = openDatabase(directTarget, { poolSize: 1, applicationName: 'quarry-session', timeoutMs });
  started.add('session database connection', () => session.end({ timeout: databaseEndSeconds }));
  return { db, direct, session, schemaVersion: migrations.at(-1)?.version ?? 0 };
}

type StreamDeps = Pick<Services, 'config' | 'log' | 'clock' | 'db' | 'direct' | 'process' | 'credentials'> & {
  home: Services | undefined;
};

/** Starts the event streams, which end with the rights of their readers. */
async function startStreams(deps: StreamDeps, started: Started): Promise<StreamHub> {
  const { config, log, clock, db, direct, home, process, credentials } = deps;
  const streams = new StreamHub({
    listenDatabase: direct,
    log,
    streamSecondsMax: config.streamSeconds,
    budget: process.streamBudget,
    clock,
    findEnded: (readers) => credentials.findEnded(readers),
    loadUsers: (users) => loadUserCallers(db, users),
  });
  await streams.start();
  started.add('event streams', () => streams.close());

  // Notifications may be missed while the connection is lost, so a reconnection counts as a notification.
  const newRights = () => {
    credentials.forget();
    void streams.endRevoked();
  };
  await direct.listen('quarry_tenancy', newRights, newRights);
  if (home !== undefined) {
    const { unlisten } = await home.direct.listen('quarry_tenancy', newRights, newRights);
    started.add('notifications of the directory', unlisten);
  }
  return streams;
}

/** Creates the services without any connection, for code that only inspects the routes. Their first query fails. */
export async function createUnconnectedServices(config: Config, log: Logger): Promise<Services> {
  const started = new Started(log);
  const nowhere = { host: '127.0.0.1', port: 1, database: 'none', username: 'none' };
  const db = openDatabase(nowhere, { poolSize: 1, applicationName: 'quarry' });
  const secrets = new Secrets('');
  const parser = new ParserPool({ workers: 1, memoryMb: config.parseMemoryMb, deadlineMs: 1, log });
  started.add('parser pool', () => parser.close());
  const onStarted = (name: string, end: () => Promise<unknown>) => started.add(name, end);
  const metrics = new Metrics();
  const options = { clock: systemClock, metrics, parser, resolve: undefined, timeouts: undefined, onStarted };
  const process = await startProcessParts(config, log, options);
  const streams = new StreamHub({
    listenDatabase: db,
    log,
    streamSecondsMax: config.streamSeconds,
    budget: process.streamBudget,
  });
  return assemble({
    config,
    log,
    clock: systemClock,
    metrics,
    target: nowhere,
    directTarget: nowhere,
    db,
    directory: db,
    process,
    direct: db,
    session: db,
    ...{ blobs: process.blobs, fetcher: process.fetcher, resolve: process.resolve, issuerKeys: process.issuerKeys },
    parser,
    streams,
    secrets,
    started,
    credentials: new Credentials({ db, secrets, clock: systemClock }),
    schemaVersion: 0,
    databaseEnded: new Promise(() => {}),
  });
}

type Parts = { home?: Services | undefined } & Pick<
  Services,
  | 'config'
  | 'log'
  | 'clock'
  | 'metrics'
  | 'target'
  | 'db'
  | 'directory'
  | 'process'
  | 'directTarget'
  | 'direct'
  | 'session'
  | 'blobs'
  | 'parser'
  | 'fetcher'
  | 'resolve'
  | 'renderer'
  | 'issuerKeys'
  | 'streams'
  | 'secrets'
  | 'credentials'
  | 'databaseEnded'
  | 'schemaVersion'
> & { started: Started };

function assemble({ started, home, ...parts }: Parts): Services {
  const { config, log, directTarget } = parts;
  let listeningUrl = `http://${urlHost(config.host)}:${config.port}`;
  let ready = false;
  let workers: Workers | undefined;
  const crashed = parts.metrics.counter('quarry_jobs_crashed_total', crashedHelp, ['task']);
  const stopWorkers = async () => {
    // Jobs that wait for a slot to resume must end; those of other cells end with the process, too.
    if (parts.db === parts.directory) parts.process.jobSlots.resumed.open();
    await workers?.stop(limits.jobStopTimeoutMs);
  };
  const settlements = createSettlements(parts);
  started.add('settlements', settlements.close);
  started.add('job workers', stopWorkers);
  return {
    ...parts,
    sessions: new Sessions(parts),
    settlements,
    baseUrl: () => config.publicUrl ?? home?.baseUrl() ?? listeningUrl,
    contentUrl: () => config.contentOrigin ?? config.publicUrl ?? home?.baseUrl() ?? listeningUrl,
    setListeningUrl: (url) => {
      listeningUrl = url;
    },
    async startWorkers(work) {
      if (!runsJobs(config)) return;
      workers = await startWorkers({
        ...work,
        target: directTarget,
        timeoutMs: config.databaseTimeoutSeconds * 1_000,
        concurrency: config.jobWorkers,
        slots: parts.process.jobSlots,
        log,
        onCrash: (task) => crashed.inc({ task }),
        trial: createTrial(programFile('./trial', import.meta.url), () => ({
          target: directTarget,
          baseUrl: this.baseUrl(),
        })),
      });
    },
    stopWorkers,
    isReady: () => ready,
    setReady: () => {
      ready = true;
    },
    close: () => started.end(),
  };
}

/** For a process that serves only one cell, because it runs a single job: a pool of the directory. */
function openDirectory(config: Config, { database }: ServicesOptions, started: Started): Database | undefined {
  const { databaseUrl, cells } = config;
  if (cells === undefined || databaseUrl === undefined || database === undefined || database === databaseUrl)
    return undefined;
  const directory = openDatabase(databaseUrl, { poolSize: directPoolSize, applicationName: 'quarry-directory' });
  started.add('connections to the directory', () => directory.end({ timeout: databaseEndSeconds }));
  return directory;
}

const crashedHelp = 'Jobs that were running when their process exited, or that threw an uncaught exception';
const replicaHelp =
  'Reads of searches and lists by where they ran: on the replica, or on the primary because the replica lagged or failed';
const directPoolSize = 2;
const databaseEndSeconds = 1;

/** The configured replica, with a counter of its reads. */
function findReplica({ databaseReplicaUrl: target }: Config, metrics: Metrics) {
  if (target === undefined) return undefined;
  const reads = metrics.counter('quarry_replica_reads_total', replicaHelp, ['outcome']);
  return { target, onRead: (outcome: ReplicaOutcome) => reads.inc({ outcome }) };
}

async function startDatabase(
  config: Config,
  log: Logger,
  options: ServicesOptions,
  started: Started,
): Promise<EmbeddedPostgres | undefined> {
  if (options.database !== undefined || config.databaseUrl !== undefined) return undefined;
  const embedded = await (options.embedded ?? startEmbeddedPostgres({ dataDir: config.dataDir, log }));
  started.add('embedded PostgreSQL', () => embedded.stop());
  return embedded;
}

/**
 * Reads the root secret of the embedded database, or creates it at the first start. Losing it ends every session and
 * signed URL.
 */
export function readOrCreateSecret(dataDir: string): string {
  const found = findSecret(dataDir);
  if (found !== undefined) return found;
  const secret = randomBytes(32).toString('hex');
  saveSecret(dataDir, secret);
  return secret;
}

/** Writes the root secret of the data directory. */
export function saveSecret(dataDir: string, secret: string): void {
  createDirectories(dataDir, 0o700);
  writePrivateFile(join(dataDir, 'secret'), `${secret}\n`);
}

export function findSecret(dataDir: string): string | undefined {
  const file = join(dataDir, 'secret');
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}

/** Formats an address for a URL: IPv6 in brackets, and loopback in place of "any address". */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/** The parts that were started. They stop in reverse order. */
class Started {
  readonly #log: Logger;
  readonly #parts: { name: string; end: () => Promise<unknown> }[] = [];
  #ending: Promise<void> | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  add(name: string, end: () => Promise<unknown>): void {
    this.#parts.push({ name, end });
  }

  end(): Promise<void> {
    this.#ending ??= this.#endAll();
    return this.#ending;
  }

  async #endAll(): Promise<void> {
    for (const { name, end } of this.#parts.reverse()) {
      try {
        await end();
      } catch (error) {
        // If a part fails to stop, the others, above all the database, must still be stopped.
        this.#log.error({ err: error, part: name }, 'Could not stop a part of the server');
      }
    }
  }
}
