import type { Db, Transaction } from '../../db/database.ts';
import type { Scope } from '../../tenancy/caller.ts';
import type { SourceKey } from '../index/store.ts';

/**
 * The embedder of a source that has named one. Names and spaces are null for the installation's. Until every document
 * has a vector of `space`, searches use those of `servingSpace`.
 */
export type EmbedderRow = SourceKey & {
  name: string | null;
  space: string | null;
  servingName: string | null;
  servingSpace: string | null;
  servingVersion: number;
  pending: boolean;
  tries: number;
  retryAt: Date | null;
  error: string | null;
  tokens: number;
  cost: number;
  startedAt: Date;
  completedAt: Date | null;
};

/** What ingestion and search need to know of it. */
export type SourceEmbedder = Pick<EmbedderRow, 'name' | 'space' | 'servingName' | 'servingSpace'>;

/** SQL: the SourceEmbedder of a source `s` of the app; null if it never named one. */
export function embedderColumn(db: Db, appId: string) {
  return db`(select jsonb_build_object('name', e.name, 'space', e.space, 'servingName', e.serving_name,
      'servingSpace', e.serving_space)
    from knowledge_embedders e where e.app_id = ${appId} and e.source_id = s.id) as embedder`;
}

export async function findEmbedder(db: Db, { appId, sourceId }: SourceKey): Promise<EmbedderRow | undefined> {
  return db<EmbedderRow[]>`
    select * from knowledge_embedders where app_id = ${appId} and source_id = ${sourceId}`.first();
}

/** Names the embedder of a new source, which has no documents. */
export async function insertEmbedder(
  db: Db,
  { appId, sourceId }: SourceKey,
  { name, space, now }: { name: string; space: string; now: Date },
): Promise<void> {
  await db`
    insert into knowledge_embedders (app_id, source_id, name, space, serving_name, serving_space, pending, started_at,
      completed_at)
    values (${appId}, ${sourceId}, ${name}, ${space}, ${name}, ${space}, false, ${now}, ${now})`;
}

/** Names another embedder, whose vectors a job computes. Searches use the previous one until it has. */
export async function nameEmbedder(
  tx: Db,
  { appId, sourceId }: SourceKey,
  { name, space, now }: { name: string | null; space: string | null; now: Date },
): Promise<void> {
  await tx`
    insert into knowledge_embedders as e (app_id, source_id, name, space, pending, started_at)
    values (${appId}, ${sourceId}, ${name}, ${space}, true, ${now})
    on conflict (app_id, source_id) do update set name = excluded.name, space = excluded.space, pending = true,
      tries = 0, retry_at = null, error = null, tokens = 0, cost = 0, started_at = excluded.started_at,
      completed_at = null`;
}

/** Has a job look for documents that lack vectors. */
export async function notePending(tx: Db, { appId, sourceId }: SourceKey): Promise<void> {
  await tx`
    update knowledge_embedders set pending = true
    where app_id = ${appId} and source_id = ${sourceId} and not pending`;
}

/** Marks all embedders for a comparison with their models, of a space or of all. Returns whether there are any. */
export async function noteAllPending(db: Db, scope?: Scope): Promise<boolean> {
  const where = scope
    ? db`e.app_id = ${scope.appId} and exists (select from knowledge_sources s where s.app_id = ${scope.appId}
        and s.id = e.source_id and s.sandbox_id = ${scope.sandboxId})`
    : db`true`;
  return db`
    update knowledge_embedders e set pending = true, retry_at = null where e.name is not null and ${where}`.any();
}

/** A name of an embedder. Each sandbox has models of its own. */
export type NamedInSandbox = { sandboxId: string; name: string };

/**
 * The app's sources with this embedder that have work that is due, those that wait for the longest first. Null: those
 * that return to the installation's.
 */
export function listPendingEmbedders(
  db: Db,
  appId: string,
  of: NamedInSandbox | null,
  now: Date,
): Promise<EmbedderRow[]> {
  const isNamed = of ? db`e.name = ${of.name} and s.sandbox_id = ${of.sandboxId}` : db`e.name is null`;
  return db<EmbedderRow[]>`
    select e.* from knowledge_embedders e join knowledge_sources s on s.app_id = e.app_id and s.id = e.source_id
    where e.app_id = ${appId} and ${isNamed} and e.pending and ${isDue(db, now)}
    order by e.started_at, e.source_id`;
}

/** The named embedders of the app that have work that is due. */
export function listPendingNames(db: Db, appId: string, now: Date): Promise<NamedInSandbox[]> {
  return db<NamedInSandbox[]>`
    select distinct s.sandbox_id, e.name
    from knowledge_embedders e join knowledge_sources s on s.app_id = e.app_id and s.id = e.source_id
    where e.app_id = ${appId} and e.name is not null and e.pending and ${isDue(db, now)}`;
}

function isDue(db: Db, now: Date) {
  return db`(retry_at is null or retry_at <= ${now})`;
}

/** Adds what a request has used. */
export async function addUse(db: Db, row: EmbedderRow, use: { tokens: number; cost: number }): Promise<void> {
  await db`
    update knowledge_embedders set tokens = tokens + ${use.tokens}, cost = cost + ${use.cost}
    where app_id = ${row.appId} and source_id = ${row.sourceId} and space is not distinct from ${row.space}`;
}

const retry = { firstSeconds: 30, secondsMax: 600 };

/** Notes why vectors could not be computed, and when to try again. */
export async function noteFailure(db: Db, row: EmbedderRow, reason: string, now: Date): Promise<void> {
  const seconds = Math.min(retry.secondsMax, retry.firstSeconds * 2 ** Math.min(row.tries, 10));
  await db`
    update knowledge_embedders set tries = tries + 1, retry_at = ${new Date(now.getTime() + seconds * 1_000)},
      error = ${reason.slice(0, 500)}
    where app_id = ${row.appId} and source_id = ${row.sourceId} and space is not distinct from ${row.space}`;
}

/** The model of the embedder now has another space. */
export async function moveToSpace(db: Db, row: EmbedderRow, space: string, now: Date): Promise<void> {
  await db`
    update knowledge_embedders set space = ${space}, tries = 0, error = null, tokens = 0, cost = 0, started_at = ${now},
      completed_at = null
    where app_id = ${row.appId} and source_id = ${row.sourceId} and name is not distinct from ${row.name}`;
}

export type PlacedDocument = { id: string; createdAt: string };

/**
 * Documents that lack vectors of the model, from the newest on. Leaves out those that the embedder refused and whose
 * retry is not due, and those whose ingestion is still running, because it embeds them itself.
 */
export function listDocumentsToEmbed(
  db: Db,
  { appId, sourceId }: SourceKey,
  model: string,
  after: PlacedDocument | undefined,
  count: number,
) {
  const beyond = after ? db`(d.created_at, d.id) < (${after.createdAt}::text::timestamptz, ${after.id})` : db`true`;
  return db<PlacedDocument[]>`
    select d.id, d.created_at::text as created_at from knowledge_documents d
    where d.app_id = ${appId} and d.source_id = ${sourceId} and d.embedding_model is distinct from ${model}
      and (d.embedding_model is not null or not ${isIngesting(db, { appId, sourceId })})
      and not exists (
        select from knowledge_embedding_refusals r where r.app_id = ${appId} and r.document_id = d.id
          and r.model = ${model} and (r.retry_at is null or r.retry_at > now()))
      and ${beyond}
    order by d.created_at desc, d.id desc limit ${count}`;
}

function isIngesting(db: Db, { appId, sourceId }: SourceKey) {
  return db`exists (
    select from knowledge_ingestions i where i.app_id = ${appId} and i.source_id = ${sourceId}
      and i.status in ('running', 'awaiting_callback'))`;
}

/** Documents of the source that lack vectors of the model: those that may still get them, and those that wait for a retry. */
export async function countLacking(db: Db, { appId, sourceId }: SourceKey, model: string) {
  return db<[{ waiting: number; refused: number }]>`
    select count(*) filter (where r.document_id is null) as waiting,
      count(*) filter (where r.retry_at is not null) as refused
    from knowledge_documents d
    left join knowledge_embedding_refusals r on r.app_id = d.app_id and r.document_id = d.id and r.model = ${model}
    where d.app_id = ${appId} and d.source_id = ${sourceId} and d.embedding_model is distinct from ${model}`.first();
}

/**
 * From the commit on, searches use the vectors of the named embedder. It completes when those that served before are
 * deleted.
 */
export async function serveEmbedder(
  tx: Transaction,
  { appId, sourceId }: SourceKey,
  { name, space, pending }: { name: string | null; space: string | null; pending: boolean },
): Promise<void> {
  await tx`
    update knowledge_embedders set tries = 0, retry_at = null, error = null, pending = ${pending},
      serving_version = serving_version + (serving_space is distinct from ${space})::int,
      completed_at = case when serving_space is not distinct from ${space} then completed_at end,
      serving_name = ${name}, serving_space = ${space}
    where app_id = ${appId} and source_id = ${sourceId}`;
}

/** Ends the work on a locked index, which has no vectors but those that serve. */
export async function completeEmbedder(
  tx: Transaction,
  { appId, sourceId }: SourceKey,
  { pending, now }: { pending: boolean; now: Date },
): Promise<void> {
  await tx`
    update knowledge_embedders set pending = ${pending}, completed_at = coalesce(completed_at, ${now})
    where app_id = ${appId} and source_id = ${sourceId}`;
}

/** The documents of a source, those with vectors of the model, those that may still get them, and the texts of all others. */
export async function measureSource(db: Db, { appId, sourceId }: SourceKey, model: string) {
  const lacks = db`d.embedding_model is distinct from ${model}`;
  return db<[{ documents: number; done: number; waiting: number; bytes: number; chunks: number }]>`
    select count(*) as documents, count(*) filter (where d.embedding_model = ${model}) as done,
      count(*) filter (where ${lacks} and (r.document_id is null or r.retry_at is not null)) as waiting,
      coalesce(sum(d.total_size) filter (where ${lacks}), 0)::bigint as bytes,
      coalesce(sum(d.chunk_count) filter (where ${lacks}), 0)::bigint as chunks
    from knowledge_documents d
    left join knowledge_embedding_refusals r on r.app_id = d.app_id and r.document_id = d.id and r.model = ${model}
    where d.app_id = ${appId} and d.source_id = ${sourceId}`.first();
}
