import type { Db } from '../db/database.ts';
import { findCreatableKind } from '../knowledge/kinds/index.ts';
import { formatId } from '../lib/ids.ts';
import { agentsOfUser, ownedByUser } from './of-user.ts';
import type { ErasureRow, Receiver } from './store.ts';

/** Services of the installation that receive contents. */
export type Services = { embedderUrl: string | undefined; tracesUrl: string | undefined };

const receiversMax = 1_000;

/**
 * Who outside received data of the subject, as far as the database shows it: the records of calls and deliveries are
 * kept for a limited time. For a document or a source, language models that the app used since then are named as
 * possible receivers, because records of calls do not say which documents were in them.
 */
export async function findReceivers(db: Db, erasure: ErasureRow, services: Services): Promise<Receiver[]> {
  const sources = await listSources(db, erasure);
  const receivers = [
    ...(await listModels(db, erasure)),
    ...(await listWebhooks(
      db,
      erasure,
      sources.map(({ id }) => id),
    )),
    ...sources.flatMap(originOf),
  ];
  const { embedderUrl, tracesUrl } = services;
  if (embedderUrl !== undefined && (sources.length > 0 || erasure.subjectKind === 'document'))
    receivers.push({ kind: 'embedder', name: 'embedder', host: hostOf(embedderUrl), certain: true });
  if (tracesUrl !== undefined)
    receivers.push({ kind: 'traces', name: 'traces', host: hostOf(tracesUrl), certain: false });
  return receivers;
}

type Source = { id: string; type: string; payload: Record<string, unknown> | null; hasConnector: boolean };

function listSources(db: Db, erasure: ErasureRow): Promise<Source[]> {
  const { appId, subjectId, subjectKind } = erasure;
  const chosen =
    subjectKind === 'user'
      ? ownedByUser(db, erasure)
      : subjectKind === 'source'
        ? db`t.id = ${subjectId}`
        : db`t.id in (
            select d.source_id from knowledge_documents d where d.app_id = ${appId} and d.id = ${subjectId}
            union select v.source_id from knowledge_versions v where v.app_id = ${appId} and v.document_id = ${subjectId})`;
  return db<Source[]>`
    select t.id, t.type, t.payload, exists (select from knowledge_syncs s where s.app_id = ${appId}
      and s.source_id = t.id) as has_connector
    from knowledge_sources t where t.app_id = ${appId} and ${chosen}
    order by t.id limit ${receiversMax}`;
}

/** Where a source reads, and where its connector does, everything still is. What was pushed has no such place. */
function originOf({ id, type, payload, hasConnector }: Source): Receiver[] {
  const isPulled = findCreatableKind(type)?.pull !== undefined && type !== 'file/document';
  if (!isPulled && !hasConnector) return [];
  const members = isPulled ? ['url', 'repository', 'endpoint'] : [];
  const url = members.map((name) => payload?.[name]).find((each) => typeof each === 'string');
  return [{ kind: 'origin', name: formatId('source', id), ...(url && { host: hostOf(String(url)) }), certain: true }];
}

async function listModels(db: Db, erasure: ErasureRow): Promise<Receiver[]> {
  const { appId, sandboxId, subjectId, subjectKind } = erasure;
  const isUser = subjectKind === 'user';
  const since =
    subjectKind === 'source'
      ? db`(select created_at from knowledge_sources where app_id = ${appId} and id = ${subjectId})`
      : db`(select min(created_at) from (
          select created_at from knowledge_documents where app_id = ${appId} and id = ${subjectId}
          union select created_at from knowledge_versions where app_id = ${appId} and document_id = ${subjectId}) kept)`;
  const chosen = isUser
    ? db`(${ownedByUser(db, erasure)} or t.run_id in (
        select r.id from automation_runs r where r.app_id = ${appId} and r.invoked_by_user_id = ${subjectId}))`
    : db`t.created_at >= ${since}`;
  const rows = await db<{ name: string; url: string | null; calls: number; lastAt: Date }[]>`
    select t.provider || '/' || t.provider_model as name, m.url, count(*)::integer as calls, max(t.created_at) as last_at
    from model_calls t left join models m on m.app_id = t.app_id and m.id = t.model_id
    where t.app_id = ${appId} and t.sandbox_id = ${sandboxId} and ${chosen}
    group by 1, 2 order by 1, 2 limit ${receiversMax}`;
  return rows.map(({ name, url, calls, lastAt }) => ({
    kind: 'model',
    name,
    ...(url === null ? {} : { host: hostOf(url) }),
    messages: calls,
    last_at: lastAt.toISOString(),
    certain: isUser,
  }));
}

async function listWebhooks(db: Db, erasure: ErasureRow, sources: string[]): Promise<Receiver[]> {
  const { appId, subjectId, subjectKind } = erasure;
  const chosen =
    subjectKind === 'user'
      ? db`(${ownedByUser(db, erasure)} or t.subject_id in (${agentsOfUser(db, erasure)}))`
      : db`(t.subject_id = ${subjectId} or t.subject_id in (
          select i.id from knowledge_ingestions i where i.app_id = ${appId} and i.source_id = any(${sources}::uuid[])
            and ${subjectKind === 'source' ? db`true` : db`i.metadata ->> 'document' = ${subjectId}`}))`;
  const rows = await db<{ id: string; url: string; deliveries: number; lastAt: Date }[]>`
    select w.id, w.url, count(*)::integer as deliveries, max(d.delivered_at) as last_at
    from events t join webhook_deliveries d on d.app_id = t.app_id and d.event_id = t.id and d.delivered_at is not null
    join webhooks w on w.app_id = d.app_id and w.id = d.webhook_id
    where t.app_id = ${appId} and ${chosen} group by 1, 2 order by 1 limit ${receiversMax}`;
  return rows.map(({ id, url, deliveries, lastAt }) => ({
    kind: 'webhook',
    name: formatId('webhook', id),
    host: hostOf(url),
    messages: deliveries,
    last_at: lastAt.toISOString(),
    certain: true,
  }));
}

/** The host of a URL; the rest may hold secrets. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'unknown';
}
