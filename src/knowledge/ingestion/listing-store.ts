import type { Db } from '../../db/database.ts';
import type { SourceKey } from '../index/store.ts';
import { jsonOrNull } from '../sources/store.ts';

/** Deletions that wait for a person. */
type HeldDeletions = { documents: number; of: number; since: string };

/** The versions of the documents with these external ids. */
export async function listVersions(db: Db, { appId, sourceId }: SourceKey, ids: string[]) {
  const rows = await db<{ externalId: string; externalVersion: string | null }[]>`
    select external_id, external_version from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and external_id = any(${ids}::text[])`;
  return new Map(rows.map((row) => [row.externalId, row.externalVersion]));
}

export async function findByExternalId(db: Db, { appId, sourceId }: SourceKey, externalId: string) {
  const [row] = await db<{ id: string }[]>`
    select id from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and external_id = ${externalId}`;
  return row?.id;
}

export async function markSeen(db: Db, { appId, sourceId }: SourceKey, ids: string[], seenBy: string): Promise<void> {
  await db`
    update knowledge_documents set external_seen_by = ${seenBy}, external_seen_at = now()
    where app_id = ${appId} and source_id = ${sourceId} and external_id = any(${ids}::text[])`;
}

export async function setListed(
  db: Db,
  appId: string,
  documentId: string,
  entry: { id: string; version: string },
  seenBy: string,
): Promise<void> {
  await db`
    update knowledge_documents set external_id = ${entry.id}, external_version = ${entry.version},
      external_seen_by = ${seenBy}, external_seen_at = now()
    where app_id = ${appId} and id = ${documentId}`;
}

/** How many documents a pull did not see, and how many there were when it began. */
export async function countUnlisted(db: Db, { appId, sourceId }: SourceKey, pull: string) {
  return db<[{ unlisted: number; before: number }]>`
    select count(*) filter (where d.external_seen_by is distinct from ${pull}) as unlisted,
      count(*) filter (where d.created_at < i.created_at) as before
    from knowledge_documents d join knowledge_ingestions i on i.app_id = d.app_id and i.id = ${pull}
    where d.app_id = ${appId} and d.source_id = ${sourceId} and d.external_id is not null`.first();
}

export async function listUnlisted(db: Db, { appId, sourceId }: SourceKey, pull: string, count: number) {
  const rows = await db<{ id: string }[]>`
    select id from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and external_id is not null
      and external_seen_by is distinct from ${pull} limit ${count}`;
  return rows.map(({ id }) => id);
}

/** Documents of a feed that it no longer contains. The order differs from pull to pull, so that each has its turn. */
export function listLeft(db: Db, { appId, sourceId }: SourceKey, pull: string, count: number) {
  return db<{ externalId: string; sourceUrl: string }[]>`
    select external_id, source_url from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and external_id is not null and source_url is not null
      and external_seen_by is distinct from ${pull}
    order by md5(id::text || ${pull}) limit ${count}`;
}

/** Documents that were last seen before this time. */
export async function listSeenBefore(db: Db, { appId, sourceId }: SourceKey, before: Date, count: number) {
  const rows = await db<{ externalId: string }[]>`
    select external_id from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and external_id is not null
      and external_seen_at < ${before} limit ${count}`;
  return rows.map(({ externalId }) => externalId);
}

export async function holdDeletions(db: Db, { appId, sourceId }: SourceKey, held: HeldDeletions | null): Promise<void> {
  await db`
    update knowledge_sources set held_deletions = ${jsonOrNull(held)}::text::jsonb
    where app_id = ${appId} and id = ${sourceId}`;
}

export async function setPullState(db: Db, { appId, sourceId }: SourceKey, state: Record<string, unknown> | null) {
  await db`
    update knowledge_sources set pull_state = ${jsonOrNull(state)}::text::jsonb
    where app_id = ${appId} and id = ${sourceId}`;
}

/** Marks what the last pull saw as seen by this one too. Returns the number of documents. */
export async function markSeenAgain(db: Db, { appId, sourceId }: SourceKey, seenBy: string): Promise<number> {
  const { count } = await db`
    update knowledge_documents d set external_seen_by = ${seenBy}, external_seen_at = now()
    where d.app_id = ${appId} and d.source_id = ${sourceId} and d.external_id is not null
      and d.external_seen_by is not distinct from (
        select l.external_seen_by from knowledge_documents l
        where l.app_id = ${appId} and l.source_id = ${sourceId} and l.external_id is not null
        order by l.external_seen_at desc limit 1)`;
  return count;
}
