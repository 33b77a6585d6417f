import type { ParserPool } from '../content/parse/pool/pool.ts';
import type { Database } from '../db/database.ts';
import type { Metrics } from '../http/metrics.ts';
import type { StreamHub } from '../http/streams/sse.ts';
import { countWorkers } from '../jobs/store.ts';
import { withinTime } from '../lib/clock.ts';
import { limits } from '../lib/limits.ts';
import type { Logger } from '../lib/log.ts';
import * as store from './store.ts';

type MonitoringDeps = {
  db: Database;
  log: Logger;
  metrics: Metrics;
  streams: StreamHub;
  databasePoolSize: number;
  /** How long values from the database are cached. */
  keptMs?: number;
};

/** All values from the database, read together. */
type Snapshot = {
  jobs: store.Group[];
  work: store.Group[];
  connections: store.Group[];
  workers: number;
  lanes: store.Lanes;
  /** How long the read waited for a connection. */
  waitSeconds: number;
};

type ReadSnapshot = () => Promise<Snapshot | undefined>;

const keptMsDefault = 5_000;
const statementTimeoutMs = 2_000;

/** Registers the metrics of one database that show whether work is stuck. docs/metrics.md explains them. */
export function registerMonitoring(deps: MonitoringDeps): void {
  const snapshot = cacheSnapshot(deps);
  registerWorkMetrics(deps.metrics, snapshot);
  registerDatabaseMetrics(deps.metrics, snapshot, deps.databasePoolSize);
  registerStreamMetrics(deps.metrics, deps.streams);
}

function registerWorkMetrics(metrics: Metrics, snapshot: ReadSnapshot): void {
  const jobs = groupsOf(snapshot, 'jobs');
  metrics.gauges('quarry_jobs', 'Background jobs by task and state', jobs(count), 'first');
  metrics.gauges(
    'quarry_jobs_oldest_seconds',
    'Time for which the oldest of these jobs has been due or running',
    jobs(age),
    'first',
  );
  const work = groupsOf(snapshot, 'work');
  metrics.gauges('quarry_work', 'Work in progress for users, by kind and state', work(count), 'first');
  metrics.gauges('quarry_work_oldest_seconds', 'Age of the oldest of these', work(age), 'first');
  const workers = numberOf(snapshot, (now) => now.workers);
  metrics.gauge('quarry_workers', 'Processes that run background jobs', workers, 'first');
  const lanes = numberOf(snapshot, (now) => now.lanes.lanes);
  metrics.gauge('quarry_job_lanes', 'Apps with background jobs that are due', lanes, 'first');
  const largest = numberOf(snapshot, (now) => now.lanes.largest);
  metrics.gauge('quarry_job_lane_largest', 'Due background jobs of the app that has most', largest, 'first');
}

function registerDatabaseMetrics(metrics: Metrics, snapshot: ReadSnapshot, poolSize: number): void {
  const connections = groupsOf(snapshot, 'connections');
  metrics.gauges(
    'quarry_database_connections',
    'Connections to the database by user and state',
    connections(count),
    'first',
  );
  metrics.gauges(
    'quarry_database_transaction_oldest_seconds',
    'Age of the oldest transaction of these',
    connections(age),
    'first',
  );
  metrics.gauge('quarry_database_pool_size', 'Size of the connection pool for requests', () => poolSize);
  metrics.gauge(
    'quarry_database_wait_seconds',
    'Time that this scrape waited for a connection of the pool',
    numberOf(snapshot, (now) => now.waitSeconds),
    'max',
  );
  metrics.gauge(
    'quarry_database_up',
    'Whether the database responded to this scrape in time',
    async () => ((await snapshot()) === undefined ? 0 : 1),
    'min',
  );
}

function registerStreamMetrics(metrics: Metrics, streams: StreamHub): void {
  metrics.gauge('quarry_streams_open', 'Open event streams', () => streams.size);
  metrics.gauge('quarry_stream_topics', 'Resources shown by open event streams', () => streams.topicCount);
  metrics.gauge(
    'quarry_stream_unread_bytes',
    'Bytes that event streams have sent and their readers have not read',
    () => streams.unreadBytes,
  );
}

/** Registers the metrics of what a process has once. */
export function registerParserMetrics(metrics: Metrics, parser: ParserPool): void {
  metrics.gauges('quarry_parser_processes', 'Parser processes of this server by state', async () => {
    const { busy, idle, starting } = parser.counts;
    return Object.entries({ busy, idle, starting }).map(([state, value]) => ({
      labels: { kind: 'parser', state },
      value,
    }));
  });
  metrics.gauge('quarry_parser_waiting', 'Documents waiting for a parser process', () => parser.counts.waiting);
  metrics.gauge(
    'quarry_parser_processes_max',
    'Documents that can be parsed concurrently',
    () => parser.counts.workers,
  );
}

const count = (group: store.Group) => group.count;
const age = (group: store.Group) => Math.max(0, group.oldestSeconds);

/** Reads one number of each group of a kind. No groups while the database does not respond. */
function groupsOf(snapshot: ReadSnapshot, kind: 'jobs' | 'work' | 'connections') {
  return (value: (group: store.Group) => number) => async () =>
    ((await snapshot())?.[kind] ?? []).map((group) => ({
      labels: { kind: group.kind, state: group.state },
      value: value(group),
    }));
}

/** Reads one number. NaN while the database does not respond. */
function numberOf(snapshot: ReadSnapshot, read: (now: Snapshot) => number): () => Promise<number> {
  return async () => {
    const now = await snapshot();
    return now === undefined ? Number.NaN : read(now);
  };
}

/** Reads the database once for all metrics and for all scrapes within a few seconds. Undefined if the read fails. */
function cacheSnapshot({ db, log, keptMs = keptMsDefault }: MonitoringDeps): ReadSnapshot {
  let kept: Promise<Snapshot | undefined> | undefined;
  let until = 0;
  return () => {
    const now = performance.now();
    if (kept !== undefined && now < until) return kept;
    until = now + keptMs;
    kept = withinTime(limits.readinessTimeoutMs, readSnapshot(db)).catch((error: unknown) => {
      log.warn({ err: error }, 'Could not read the values for /metrics from the database');
      return undefined;
    });
    return kept;
  };
}

async function readSnapshot(db: Database): Promise<Snapshot> {
  const askedAt = performance.now();
  return db.begin('read only', async (tx) => {
    const waitSeconds = (performance.now() - askedAt) / 1_000;
    await tx`select set_config('statement_timeout', ${String(statementTimeoutMs)}, true)`;
    const [jobs, work, connections, workers, lanes] = await Promise.all([
      store.countJobs(tx),
      store.countWork(tx),
      store.countConnections(tx),
      countWorkers(tx),
      store.countLanes(tx),
    ]);
    return { jobs, work, connections, workers, lanes, waitSeconds };
  });
}
