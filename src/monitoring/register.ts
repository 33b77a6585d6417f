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

const keptMsDefault = 5_000;
const statementTimeoutMs = 2_000;

/** Registers the metrics of one database that show whether work is stuck. docs/metrics.md explains them. */
export function registerMonitoring(deps: MonitoringDeps): void {
  const { metrics, streams } = deps;
  const snapshot = cacheSnapshot(deps);
  const groups = async (pick: (of: Snapshot) => store.Group[], value: (group: store.Group) => number) =>
    pick((await snapshot()) ?? emptySnapshot).map((group) => ({
      labels: { kind: group.kind, state: group.state },
      value: value(group),
    }));
  const count = (group: store.Group) => group.count;
  const age = (group: store.Group) => Math.max(0, group.oldestSeconds);
  const one = (read: (of: Snapshot) => number) => async () => {
    const now = await snapshot();
    return now === undefined ? Number.NaN : read(now);
  };

  metrics.gauges('quarry_jobs', 'Background jobs by task and state', () => groups(({ jobs }) => jobs, count), 'first');
  metrics.gauges(
    'quarry_jobs_oldest_seconds',
    'Time for which the oldest of these jobs has been due or running',
    () => groups(({ jobs }) => jobs, age),
    'first',
  );
  metrics.gauges(
    'quarry_work',
    'Work in progress for users, by kind and state',
    () => groups(({ work }) => work, count),
    'first',
  );
  metrics.gauges(
    'quarry_work_oldest_seconds',
    'Age of the oldest of these',
    () => groups(({ work }) => work, age),
    'first',
  );
  metrics.gauge(
    'quarry_workers',
    'Processes that run background jobs',
    one(({ workers }) => workers),
    'first',
  );
  metrics.gauge(
    'quarry_job_lanes',
    'Apps with background jobs that are due',
    one(({ lanes }) => lanes.lanes),
    'first',
  );
  metrics.gauge(
    'quarry_job_lane_largest',
    'Due background jobs of the app that has most',
    one(({ lanes }) => lanes.largest),
    'first',
  );

  metrics.gauges(
    'quarry_database_connections',
    'Connections to the database by user and state',
    () => groups(({ connections }) => connections, count),
    'first',
  );
  metrics.gauges(
    'quarry_database_transaction_oldest_seconds',
    'Age of the oldest transaction of these',
    () => groups(({ connections }) => connections, age),
    'first',
  );
  metrics.gauge('quarry_database_pool_size', 'Size of the connection pool for requests', () => deps.databasePoolSize);
  metrics.gauge(
    'quarry_database_wait_seconds',
    'Time that this scrape waited for a connection of the pool',
    one(({ waitSeconds }) => waitSeconds),
    'max',
  );
  metrics.gauge(
    'quarry_database_up',
    'Whether the database responded to this scrape in time',
    async () => ((await snapshot()) === undefined ? 0 : 1),
    'min',
  );

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

const emptySnapshot: Snapshot = {
  ...{ jobs: [], work: [], connections: [], workers: 0, waitSeconds: 0 },
  lanes: { lanes: 0, largest: 0 },
};

/** Reads the database once for all metrics and for all scrapes within a few seconds. Undefined if the read fails. */
function cacheSnapshot({ db, log, keptMs = keptMsDefault }: MonitoringDeps): () => Promise<Snapshot | undefined> {
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
