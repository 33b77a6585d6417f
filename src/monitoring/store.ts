import type { Transaction } from '../db/database.ts';
import { presenceLockSpace } from '../jobs/presence.ts';

/** A count by kind and state, with the age of the oldest in seconds. */
export type Group = { kind: string; state: string; count: number; oldestSeconds: number };

/** Rows counted of each kind; higher counts are cut off. */
const rowsMax = 10_000;
const jobsMax = 100_000;

/** Jobs by task: `ready` jobs are due, `scheduled` jobs are due later, `failed` jobs are not retried. */
export function countJobs(tx: Transaction): Promise<Group[]> {
  return tx<Group[]>`
    select kind, state, count(*) as count, extract(epoch from now() - min(since))::float8 as oldest_seconds
    from (select task_identifier as kind,
        case when locked_at is not null then 'running' when attempts >= max_attempts then 'failed'
          when run_at > now() then 'scheduled' else 'ready' end as state,
        case when locked_at is not null then locked_at when run_at > now() then now() else run_at end as since
      from graphile_worker.jobs limit ${jobsMax}) jobs
    group by kind, state`;
}

/** Work in progress on behalf of users. */
export function countWork(tx: Transaction): Promise<Group[]> {
  return tx<Group[]>`
    select kind, state, count(*) as count, extract(epoch from now() - min(since))::float8 as oldest_seconds
    from (
      (select 'extraction' as kind, state, created_at as since from extractions where state = 'running' limit ${rowsMax})
      union all
      (select 'crawl', 'running', created_at from crawls where finished_at is null limit ${rowsMax})
      union all
      (select 'ingestion', case when queued then 'queued' else status end, coalesce(started_at, created_at)
        from knowledge_ingestions where status in ('pending', 'running', 'awaiting_callback') limit ${rowsMax})
      union all
      (select 'automation_run', status, created_at from automation_runs where status = 'pending' limit ${rowsMax})
      union all
      (select 'automation_run', status, coalesce(started_at, created_at) from automation_runs where status = 'running'
        limit ${rowsMax})
      union all
      -- Timers and retries whose time has come and that nobody has woken.
      (select 'automation_run', 'overdue', wake_at from automation_runs where wake_at < now() limit ${rowsMax})
      union all
      (select 'document', 'unembedded', created_at from knowledge_documents where embedding_model is null
        order by created_at limit ${rowsMax})
      union all
      (select 'blob', 'to_delete', due_at from doomed_blobs where due_at < now() limit ${rowsMax})) work
    group by kind, state`;
}

/** Processes that run background jobs: each holds a session lock. */
export async function countWorkers(tx: Transaction): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    select count(distinct objid) as count from pg_locks
    where locktype = 'advisory' and classid = ${presenceLockSpace}::bigint::oid and objsubid = 2 and granted
      and database = (select oid from pg_database where datname = current_database())`;
  return row.count;
}

/** Connections to the database by application and state, with the age of the oldest transaction. */
export function countConnections(tx: Transaction): Promise<Group[]> {
  return tx<Group[]>`
    select case when application_name like 'quarry%' then application_name else 'other' end as kind,
      coalesce(state, 'unknown') as state, count(*) as count,
      coalesce(extract(epoch from clock_timestamp() - min(xact_start)), 0)::float8 as oldest_seconds
    from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() group by 1, 2`;
}
