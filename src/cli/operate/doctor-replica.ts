import { setTimeout as wait } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { type Database, isDatabaseError, openDatabase } from '../../db/database.ts';
import { describeError } from '../explain.ts';
import { type CheckResult, sharesConnections } from './doctor-surroundings.ts';

const timeoutMs = 5_000;
/** How long the replica may take to replay what the primary has written. */
const catchUpMsMax = 1_000;

/** Checks that DATABASE_REPLICA_URL names a streaming replica of this database, and that it keeps up. */
export async function checkReplicaUrl(primary: Database, config: Config): Promise<CheckResult[]> {
  if (config.databaseReplicaUrl === undefined) return [];
  const replica = openDatabase(config.databaseReplicaUrl, {
    poolSize: 2,
    applicationName: 'quarry-cli',
    prepare: false,
    timeoutMs,
  });
  try {
    return [await compare(primary, replica)];
  } catch (error) {
    return [explain(error)];
  } finally {
    await replica.end({ timeout: 5 });
  }
}

async function compare(primary: Database, replica: Database): Promise<CheckResult> {
  const own = await identify(primary);
  const other = await identify(replica);
  if (!other.standby)
    return {
      level: 'fail',
      message: 'DATABASE_REPLICA_URL is not a replica: it accepts writes, so the primary serves every read',
      fix: 'Name a standby that streams from the primary, or remove the setting.',
    };
  if (own.system !== null && other.system !== null && own.system !== other.system)
    return {
      level: 'fail',
      message: 'DATABASE_REPLICA_URL is a replica of another PostgreSQL, so the primary serves every read',
      fix: 'Name a standby that was created from the primary in DATABASE_URL (pg_basebackup).',
    };
  if (own.database !== other.database)
    return {
      level: 'fail',
      message: `DATABASE_REPLICA_URL names the database ${other.database}, DATABASE_URL ${own.database}`,
      fix: 'Both must end in the same name.',
    };
  if (await sharesConnections(replica))
    return {
      level: 'fail',
      message: 'DATABASE_REPLICA_URL is a pooler in transaction mode',
      fix: 'Name the replica itself, or a balancer that keeps each connection on its server.',
    };
  return measureLag(primary, replica);
}

type Identity = { standby: boolean; database: string; system: string | null };

async function identify(db: Database): Promise<Identity> {
  const [row] = await db<[Identity]>`
    select pg_is_in_recovery() as standby, current_database()::text as database, null as system`;
  try {
    const [control] = await db<[{ system: string }]>`select system_identifier::text as system from pg_control_system()`;
    return { ...row, system: control.system };
  } catch (error) {
    // Some managed services do not allow this query.
    if (isDatabaseError(error, '42501')) return row;
    throw error;
  }
}

async function measureLag(primary: Database, replica: Database): Promise<CheckResult> {
  const [{ position }] = await primary<[{ position: string }]>`select pg_current_wal_flush_lsn()::text as position`;
  const start = performance.now();
  for (;;) {
    const [{ behind }] = await replica<[{ behind: number }]>`
      select pg_wal_lsn_diff(${position}::pg_lsn, coalesce(pg_last_wal_replay_lsn(), '0/0'))::float8 as behind`;
    const ms = Math.round(performance.now() - start);
    if (behind <= 0) return { level: 'ok', message: `the replica caught up within ${ms} ms` };
    if (ms > catchUpMsMax)
      return {
        level: 'warn',
        message: `the replica lacks ${behind} bytes after ${catchUpMsMax} ms, so the primary serves the reads`,
        fix: 'Check that it streams (pg_stat_replication on the primary), its load, and pg_is_wal_replay_paused().',
      };
    await wait(20);
  }
}

function explain(error: unknown): CheckResult {
  const { code = '' } = error as { code?: string };
  if (/^28/.test(code))
    return {
      level: 'fail',
      message: 'the replica rejects the user or password in DATABASE_REPLICA_URL',
      fix: 'It has the users of the primary; check the URL, and pg_hba.conf on the replica.',
    };
  if (code === '3D000')
    return {
      level: 'fail',
      message: 'the database in DATABASE_REPLICA_URL does not exist',
      fix: 'It has the name of the one in DATABASE_URL.',
    };
  return {
    level: 'warn',
    message:
      `the replica cannot be used, so the primary serves its reads: ${describeError(error).split('\n')[0]}`.replace(
        'DATABASE_URL',
        'DATABASE_REPLICA_URL',
      ),
    fix: 'Check that it runs, accepts connections (hot_standby = on), and that the address is right.',
  };
}
