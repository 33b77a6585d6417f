import { type Db, production, type Transaction } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Scope } from '../tenancy/caller.ts';

/** A count by kind and state, and the age of the oldest in seconds. */
export type Group = { kind: string; state: string; count: number; oldestSeconds: number };

/** Apps with due jobs, and the due jobs of the app that has most. */
export type Lanes = { lanes: number; largest: number };

/** The maximum number of rows counted of each kind. Higher counts are cut off. */
const rowsMax = 10_000;
const jobsMax = 100_000;

/** Counts jobs by task: `ready` jobs are due, `scheduled` jobs are due later, `failed` jobs are not retried. */
export function countJobs(tx: Transaction): Promise<Group[]> {
  return tx<Group[]>`
    select kind, state, count(*) as count, extract(epoch from now() - min(since))::float8 as oldest_seconds
    from (select task as kind,
        case when locked_at is not null then 'running' when attempts >= max_attempts then 'failed'
          when run_at > now() then 'scheduled' else 'ready' end as state,
        case when locked_at is not null then locked_at when run_at > now() then now() else run_at end as since
      from jobs limit ${jobsMax}) jobs
    group by kind, state`;
}

/** Counts the apps that have due jobs, and the due jobs of the one that has most. */
export async function countLanes(tx: Transaction): Promise<Lanes> {
  return tx<[Lanes]>`
    select count(*) as lanes, coalesce(max(jobs), 0) as largest
    from (
      select app_id, count(*) as jobs
      from (select app_id from jobs where locked_at is null and attempts < max_attempts and run_at <= now()
        limit ${jobsMax}) due
      group by app_id) lanes`.first();
}

/** Counts work in progress on behalf of users. */
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
      -- Timers and retries that are due and that no process has woken.
      (select 'automation_run', 'overdue', wake_at from automation_run_wakes where wake_at < now() limit ${rowsMax})
      union all
      (select 'document', 'unembedded', created_at from knowledge_documents d where embedding_model is null
        and not exists (select from knowledge_embedding_refusals r
          where r.app_id = d.app_id and r.document_id = d.id and r.retry_at is null)
        order by created_at limit ${rowsMax})
      union all
      -- The embedder rejected them permanently.
      (select 'document', 'refused', refused_at from knowledge_embedding_refusals where retry_at is null limit ${rowsMax})
      union all
      -- Those of paused webhooks wait for a person.
      (select 'webhook_delivery', case when d.next_attempt_at <= now() then 'due' else 'scheduled' end,
          least(d.next_attempt_at, now())
        from webhook_deliveries d join webhooks w on w.app_id = d.app_id and w.id = d.webhook_id and w.status = 'active'
        where d.state = 'pending' limit ${rowsMax})
      union all
      (select 'blob', 'to_delete', due_at from doomed_blobs where due_at < now() limit ${rowsMax})) work
    group by kind, state`;
}

/** Counts connections to the database by application and state, with the age of the oldest transaction. */
export function countConnections(tx: Transaction): Promise<Group[]> {
  return tx<Group[]>`
    select case when application_name like 'quarry%' then application_name else 'other' end as kind,
      coalesce(state, 'unknown') as state, count(*) as count,
      coalesce(extract(epoch from clock_timestamp() - min(xact_start)), 0)::float8 as oldest_seconds
    from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() group by 1, 2`;
}

/** The kind of resource that a job works on. */
type Subject = 'automationRun' | 'event' | 'extraction' | 'ingestion' | 'source';

/** A background job of an app that is no longer retried. */
export type SetAsideJobRow = {
  id: string;
  task: string;
  subject: Subject | null;
  subjectId: string | null;
  reason: string;
  attempts: number;
  crashes: number;
  setAsideAt: Date;
};

/** The jobs of the scope that are set aside, newest first. */
export async function listSetAsideJobs(
  db: Db,
  scope: Scope,
  page: PageRequest,
): Promise<[rows: SetAsideJobRow[], total: number]> {
  return readWithTotal(
    db<SetAsideJobRow[]>`
      select * from ${setAsideJobs(db, scope)} order by set_aside_at desc, id desc
      limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from ${setAsideJobs(db, scope)}`,
  );
}

export async function findSetAsideJob(db: Db, scope: Scope, id: string): Promise<SetAsideJobRow | undefined> {
  return db<SetAsideJobRow[]>`select * from ${setAsideJobs(db, scope)} where id = ${id}::bigint`.first();
}

/**
 * A job has no sandbox of its own: it belongs to the sandbox of its resource, and is hidden if that was deleted. A
 * job that embeds all documents of an app belongs to production.
 */
function setAsideJobs(db: Db, { appId, sandboxId }: Scope) {
  return db`(
    select job.id, job.task, job.reason, job.attempts, job.crashes, job.set_aside_at,
      case when run.id is not null then 'automationRun' when event.id is not null then 'event'
        when extraction.id is not null then 'extraction' when ingestion.id is not null then 'ingestion'
        when source.id is not null then 'source' end as subject,
      coalesce(run.id, event.id, extraction.id, ingestion.id, source.id) as subject_id
    from (
      select jobs.id, jobs.task, coalesce(jobs.last_error, '') as reason, jobs.attempts::integer,
        jobs.crashes::integer, jobs.updated_at as set_aside_at,
        coalesce(jobs.payload ->> 'runId', jobs.payload -> 'runs' -> 0 ->> 'runId')::uuid as run_id,
        (jobs.payload ->> 'eventId')::uuid as event_id, (jobs.payload ->> 'sandboxId')::uuid as sandbox_id,
        (jobs.payload ->> 'sourceId')::uuid as source_id,
        (jobs.payload ->> 'crawl_id')::uuid as crawl_id, (jobs.payload ->> 'extraction_id')::uuid as extraction_id, (jobs.payload ->> 'ingestionId')::uuid as ingestion_id
      from jobs
      where jobs.app_id = ${appId} and jobs.attempts >= jobs.max_attempts and jobs.locked_by is null) job
    left join automation_runs run on run.app_id = ${appId} and run.id = job.run_id
    left join events event on event.app_id = ${appId} and event.id = job.event_id
    left join extractions extraction on extraction.app_id = ${appId}
      and extraction.id = coalesce(job.extraction_id, job.crawl_id)
    left join knowledge_ingestions ingestion
      on ingestion.app_id = ${appId} and ingestion.id = coalesce(job.ingestion_id, job.crawl_id)
    left join knowledge_sources source
      on source.app_id = ${appId} and source.id = coalesce(ingestion.source_id, job.source_id)
    where coalesce(run.sandbox_id, event.sandbox_id, extraction.sandbox_id, source.sandbox_id,
      case when job.task = ${taskNames.embedDocuments} then coalesce(job.sandbox_id, ${production}::uuid) end) = ${sandboxId}) set_aside`;
}
