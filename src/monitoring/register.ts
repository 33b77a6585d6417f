import type { ParserPool } from '../content/parse/pool/pool.ts';
import type { Database } from '../db/database.ts';
import type { Metrics } from '../http/metrics.ts';
import type { StreamHub } from '../http/sse.ts';
import type { Logger } from '../log.ts';
import * as store from './store.ts';

type MonitoringDeps = {
  db: Database;
  log: Logger;
  metrics: Metrics;
  parser: ParserPool;
  streams: StreamHub;
  databasePoolSize: number;
  /** How long numbers from the database are shown before they are asked for again. */
  keptMs?: number;
};

/** Everything that the database tells, of one moment. */
type Snapshot = {
  jobs: store.Group[];
  work: store.Group[];
  connections: store.Group[];
  workers: number;
  /** From asking for a connection to having it. */
  waitSeconds: number;
};

const keptMsDefault = 5_000;
const statementTimeoutMs = 2_000;

/** Registers the metrics that answer whether anything is stuck. docs/metrics.md explains them. */
export function registerMonitoring(deps: MonitoringDeps): void {
  const { metrics, parser, streams } = deps;
  const snapshot = remembered(deps);
  const groups = async (pick: (of: Snapshot) => store.Group[], value: (group: store.Group) => number) =>
    pick((await snapshot()) ?? nothing).map((group) => ({
      labels: { kind: group.kind, state: group.state },
      value: value(group),
    }));
  const count = (group: store.Group) => group.count;
  const age = (group: store.Group) => Math.max(0, group.oldestSeconds);
  const one = (read: (of: Snapshot) => number) => async () => {
    const now = await snapshot();
    return now === undefined ? Number.NaN : read(now);
  };

  metrics.gauges('quarry_jobs', 'Background jobs by task and state', () => groups(({ jobs }) => jobs, count));
  metrics.gauges('quarry_jobs_oldest_seconds', 'How long the oldest of these jobs has been due or running', () =>
    groups(({ jobs }) => jobs, age),
  );
  metrics.gauges('quarry_work', 'What is under way for users, by kind and state', () =>
    groups(({ work }) => work, count),
  );
  metrics.gauges('quarry_work_oldest_seconds', 'The age of the oldest of these', () => groups(({ work }) => work, age));
  metrics.gauge(
    'quarry_workers',
    'Processes that run background jobs',
    one(({ workers }) => workers),
  );

  metrics.gauges('quarry_database_connections', 'Connections to the database by user and state', () =>
    groups(({ connections }) => connections, count),
  );
  metrics.gauges('quarry_database_transaction_oldest_seconds', 'The age of the oldest transaction of these', () =>
    groups(({ connections }) => connections, age),
  );
  metrics.gauge(
    'quarry_database_pool_size',
    'Connections that this process may have for requests',
    () => deps.databasePoolSize,
  );
  metrics.gauge(
    'quarry_database_wait_seconds',
    'How long this scrape waited for a connection of the pool',
    one(({ waitSeconds }) => waitSeconds),
  );
  metrics.gauge('quarry_database_up', 'Whether the database answered this scrape in time', async () =>
    (await snapshot()) === undefined ? 0 : 1,
  );

  metrics.gauges('quarry_parser_processes', 'Parser processes of this server by state', async () => {
    const { busy, idle, starting } = parser.counts;
    return Object.entries({ busy, idle, starting }).map(([state, value]) => ({
      labels: { kind: 'parser', state },
      value,
    }));
  });
  metrics.gauge('quarry_parser_waiting', 'Documents that wait for a parser process', () => parser.counts.waiting);
  metrics.gauge(
    'quarry_parser_processes_max',
    'Documents that can be parsed at the same time',
    () => parser.counts.workers,
  );
  metrics.gauge('quarry_streams_open', 'Event streams that are open', () => streams.size);
  metrics.gauge('quarry_stream_topics', 'Things that open streams show', () => streams.topicCount);
}

const nothing: Snapshot = { jobs: [], work: [], connections: [], workers: 0, waitSeconds: 0 };

/** One look at the database serves every metric, and every scrape within a few seconds. Undefined when it fails. */
function remembered({ db, log, keptMs = keptMsDefault }: MonitoringDeps): () => Promise<Snapshot | undefined> {
  let kept: Promise<Snapshot | undefined> | undefined;
  let until = 0;
  return () => {
    const now = performance.now();
    if (kept !== undefined && now < until) return kept;
    until = now + keptMs;
    kept = look(db).catch((error: unknown) => {
      log.warn({ err: error }, 'The database did not tell its numbers for /metrics');
      return undefined;
    });
    return kept;
  };
}

async function look(db: Database): Promise<Snapshot> {
  const askedAt = performance.now();
  return db.begin('read only', async (tx) => {
    const waitSeconds = (performance.now() - askedAt) / 1_000;
    await tx`select set_config('statement_timeout', ${String(statementTimeoutMs)}, true)`;
    const [jobs, work, connections, workers] = await Promise.all([
      store.countJobs(tx),
      store.countWork(tx),
      store.countConnections(tx),
      store.countWorkers(tx),
    ]);
    return { jobs, work, connections, workers, waitSeconds };
  });
}
