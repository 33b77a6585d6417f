/*
 * Triggers of knowledge_sources: sources_created_or_deleted and sources_updated emit events; knowledge_sources_removed
 * lists the source, so that a job clears its index.
 */
import { codeHeaderBytes } from '../../content/learn/codes.ts';
import type { Db, Statement } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import { type Keyset, type KeysetPage, readKeyset, readWithTotal } from '../../db/pages.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { type Caller, canSeeWholeApp, type Scope } from '../../tenancy/caller.ts';
import { documentVisible, ingestionVisible } from '../../tenancy/document-readers.ts';
import {
  type AgentOwners,
  agentVisible,
  inScope,
  matchesSeen,
  type Owned,
  ownedVisible,
  sandboxIsThere,
} from '../../tenancy/visible.ts';
import { embedderColumn, type SourceEmbedder } from '../embedding/store.ts';

export type SourceRow = Owned & {
  appId: string;
  id: string;
  sandboxId: string;
  type: string;
  state: 'active' | 'paused';
  payload: Record<string, unknown> | null;
  metadata: Record<string, unknown> | null;
  threadId: string | null;
  installationId: string | null;
  parentSourceId: string | null;
  lookupKey: string | null;
  nextPullAt: Date | null;
  inboundToken: Buffer | null;
  inboundSecret: Buffer | null;
  inboundPreviousSecret: Buffer | null;
  inboundPreviousSecretUntil: Date | null;
  credentials: Buffer | null;
  credentialsFor: string | null;
  pullState: Record<string, unknown> | null;
  heldDeletions: { documents: number; of: number; since: string } | null;
  /** The embedder that it has named, if it was read with `embedderColumn`. */
  embedder?: SourceEmbedder | null;
  /** For how many days old versions are kept, and since when; null if none are. */
  versionRetentionDays: number | null;
  versionsFrom: Date | null;
  createdAt: Date;
  updatedAt: Date;
};

/**
 * A source with its learned model; null if none was stored or refused. With `hidesCounts`, documents may be hidden from the
 * caller, and so are the numbers that count all of them.
 */
export type SourceView = SourceRow & { model: SourceModel | null; hidesCounts: boolean };
export type IngestionStatus = 'pending' | 'running' | 'awaiting_callback' | 'succeeded' | 'failed';

/** What is in a source, and how its last ingestion went. */
type SourceStatistics = {
  documents: number;
  lastIngestion: { status: IngestionStatus; createdAt: string } | null;
};
export type ListedSource = SourceView & { statistics?: SourceStatistics };
type SourceModel = { bytes: number; refusedBytes: number | null; trainedAt: string | null };

/** SQL: the columns of a SourceView `s`, as the caller sees it. */
function viewColumns(db: Db, { appId }: Scope, caller?: Caller): Fragment {
  // Some chunks may be hidden from users and agents, so they get the size that the model has without restricted ones.
  const seesAll = caller === undefined || canSeeWholeApp(caller);
  const bytes = seesAll
    ? db`m.bytes`
    : db`coalesce(case when m.dimensions = 0 then 0 else m.word_bytes + (
        select (i.chunk_count - i.restricted_chunks) * (${codeHeaderBytes}::bigint + m.dimensions)
        from knowledge_indexes i where i.app_id = ${appId} and i.source_id = m.source_id) end, m.bytes)`;
  return db`s.*, (
    select jsonb_build_object('bytes', ${bytes}, 'refusedBytes', m.refused_bytes,
      'trainedAt', case when m.dimensions > 0 then m.trained_at end)
    from knowledge_models m
    where m.app_id = ${appId} and m.source_id = s.id and (m.dimensions > 0 or m.refused_bytes is not null)) as model,
    ${
      seesAll
        ? db`false`
        : db`exists (select 1 from knowledge_indexes i
      where i.app_id = ${appId} and i.source_id = s.id and i.restricted_chunks > 0)`
    } as hides_counts, ${embedderColumn(db, appId)}`;
}

/** SQL: the SourceStatistics of a source `s`. */
function statisticsColumn(db: Db, caller: Caller): Fragment {
  return db`jsonb_build_object(
    'documents', (select count(*) from knowledge_documents d
      where d.app_id = ${caller.appId} and d.source_id = s.id and ${documentVisible(db, caller, 'd')}),
    'lastIngestion', (
      select jsonb_build_object('status', i.status, 'createdAt', i.created_at) from knowledge_ingestions i
      where i.app_id = ${caller.appId} and i.source_id = s.id and ${ingestionVisible(db, caller, 'i')}
      order by i.created_at desc, i.id desc limit 1)) as statistics`;
}

type NewSource = Owned &
  Pick<
    SourceRow,
    'id' | 'type' | 'state' | 'payload' | 'metadata' | 'threadId' | 'installationId' | 'parentSourceId' | 'nextPullAt'
  > & {
    lookupKey?: string | null;
    inbound?: { digest: Buffer; token: Buffer };
    credentials?: Buffer | null;
    credentialsFor?: string | null;
    versionRetentionDays?: number | null;
  };

type Fragment = Statement;

/** SQL: whether the source `alias` is visible to the caller, by its owner or to an admin of its organisation. */
export function sourceVisible(db: Db, caller: Caller, alias: string): Fragment {
  const owned = ownedVisible(db, caller, alias);
  if (caller.kind !== 'user' || caller.orgRole !== 'admin' || caller.orgId === undefined) return owned;
  return db`((${owned}) or (${inScope(db, caller, alias)} and ${db(`${alias}.org_id`)} = ${caller.orgId}))`;
}

export async function insertSource(db: Db, scope: Scope, source: NewSource): Promise<SourceView> {
  return db<[SourceView]>`
    insert into knowledge_sources as s (app_id, sandbox_id, id, type, state, payload, metadata, org_id, team_id, user_id,
      agent_id, thread_id, installation_id, parent_source_id, next_pull_at, lookup_key, inbound_digest, inbound_token,
      credentials, credentials_for, version_retention_days, versions_from)
    values (${scope.appId}, ${scope.sandboxId}, ${source.id}, ${source.type}, ${source.state},
      ${jsonOrNull(source.payload)}::text::jsonb, ${jsonOrNull(source.metadata)}::text::jsonb, ${source.orgId},
      ${source.teamId}, ${source.userId}, ${source.agentId}, ${source.threadId}, ${source.installationId},
      ${source.parentSourceId}, ${source.nextPullAt}, ${source.lookupKey ?? null}, ${source.inbound?.digest ?? null}, ${source.inbound?.token ?? null},
      ${source.credentials ?? null}, ${source.credentialsFor ?? null}, ${source.versionRetentionDays ?? null},
      ${source.versionRetentionDays == null ? null : db`date_trunc('milliseconds', clock_timestamp())`})
    returning ${viewColumns(db, scope)}`.first();
}

export function jsonOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

/** A visible source with the owners of its agent, which decide who may change it. */
export async function findSource(
  db: Db,
  caller: Caller,
  id: string,
): Promise<(SourceView & { agent: AgentOwners | undefined }) | undefined> {
  const [row] = await db<(SourceView & { ownerOfAgent: AgentOwners | null })[]>`
    select ${viewColumns(db, caller, caller)}, (select jsonb_build_object('id', a.id, 'orgId', a.org_id, 'teamId', a.team_id, 'userId', a.user_id)
        from agents a where a.app_id = ${caller.appId} and a.id = s.agent_id) as owner_of_agent
    from knowledge_sources s where s.id = ${id} and ${sourceVisible(db, caller, 's')}`;
  return row && { ...row, agent: row.ownerOfAgent ?? undefined };
}

/** A source without a visibility check: for background work. */
export async function findSourceById(db: Db, appId: string, id: string): Promise<SourceRow | undefined> {
  return db<SourceRow[]>`
    select s.*, ${embedderColumn(db, appId)} from knowledge_sources s where s.app_id = ${appId} and s.id = ${id}`.first();
}

type SourceFilter = {
  search?: string | undefined;
  name?: string | undefined;
  type?: string | undefined;
  teams?: string[] | undefined;
  threads?: string[] | undefined;
  installation?: string | undefined;
  agent?: string | undefined;
  org?: string | undefined;
  lookupKey?: string | undefined;
  ownerScope?: 'any' | 'individual' | 'system' | undefined;
  withStatistics?: boolean;
};

export async function listSources(
  db: Db,
  caller: Caller,
  filter: SourceFilter,
  page: PageRequest,
): Promise<[ListedSource[], number]> {
  const where = sourceConditions(db, caller, filter);
  const statistics = filter.withStatistics ? db`, ${statisticsColumn(db, caller)}` : db``;
  return readWithTotal(
    db<ListedSource[]>`
      select ${viewColumns(db, caller, caller)}${statistics} from knowledge_sources s where ${where}
      order by s.created_at desc, s.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from knowledge_sources s where ${where}`,
  );
}

/** A page of the visible sources of a type, in the order of their ids. */
export function listSourcesByKeyset(
  db: Db,
  caller: Caller,
  type: string,
  keyset: Keyset,
): Promise<KeysetPage<SourceRow>> {
  return readKeyset(
    db,
    db`s.id`,
    keyset,
    ({ where, order, limit }) => db<SourceRow[]>`
      select s.* from knowledge_sources s where ${sourceConditions(db, caller, { type })} and ${where}
      order by ${order} limit ${limit}`,
  );
}

function sourceConditions(db: Db, caller: Caller, filter: SourceFilter): Fragment {
  const conditions: Fragment[] = [sourceVisible(db, caller, 's')];
  if (filter.search !== undefined) conditions.push(db`strpos(lower(s.type), lower(${filter.search})) > 0`);
  if (filter.name !== undefined)
    conditions.push(db`(strpos(lower(coalesce(s.metadata ->> 'name', '')), lower(${filter.name})) > 0
      or strpos(lower(coalesce(s.payload ->> 'url', '')), lower(${filter.name})) > 0)`);
  if (filter.lookupKey !== undefined) conditions.push(db`s.lookup_key = ${filter.lookupKey}`);
  if (filter.type !== undefined) conditions.push(db`s.type = ${filter.type}`);
  if (filter.teams) conditions.push(matchesSeen(db, caller, 'team', 's.team_id', filter.teams));
  if (filter.threads) conditions.push(matchesSeen(db, caller, 'thread', 's.thread_id', filter.threads));
  if (filter.installation !== undefined)
    conditions.push(matchesSeen(db, caller, 'installation', 's.installation_id', [filter.installation]));
  if (filter.org !== undefined) conditions.push(matchesSeen(db, caller, 'org', 's.org_id', [filter.org]));
  if (filter.agent !== undefined) conditions.push(sourceOfAgent(db, caller, filter.agent));
  if (filter.ownerScope === 'individual') conditions.push(db`num_nonnulls(s.team_id, s.user_id, s.agent_id) > 0`);
  if (filter.ownerScope === 'system') conditions.push(db`num_nonnulls(s.team_id, s.user_id, s.agent_id) = 0`);
  return conditions.reduce((all, one) => db`${all} and ${one}`);
}

/**
 * SQL: the source belongs to an agent, to one of its installations, or to one of its threads; null if it is not
 * visible.
 */
function sourceOfAgent(db: Db, caller: Caller, agentId: string): Fragment {
  return db`(s.agent_id = ${agentId}
    or s.installation_id in (select i.id from installations i where i.app_id = ${caller.appId} and i.agent_id = ${agentId})
    or s.thread_id in (select t.id from threads t where t.app_id = ${caller.appId} and t.agent_id = ${agentId}))
    and exists (select 1 from agents seen where seen.id = ${agentId} and ${agentVisible(db, caller, 'seen')})`;
}

export async function updateSource(
  db: Db,
  caller: Caller,
  id: string,
  change: {
    payload?: Record<string, unknown> | undefined;
    metadata?: Record<string, unknown> | undefined;
    state?: 'active' | 'paused' | undefined;
    lookupKey?: string | null | undefined;
    nextPullAt: Date | null;
    credentials: Buffer | null;
    credentialsFor: string | null;
    /** Null keeps no versions; undefined changes nothing. */
    versionRetentionDays?: number | null | undefined;
  },
): Promise<SourceView | undefined> {
  const { versionRetentionDays: days } = change;
  return db<SourceView[]>`
    update knowledge_sources s set
      payload = coalesce(${jsonOrNull(change.payload)}::text::jsonb, s.payload),
      metadata = coalesce(${jsonOrNull(change.metadata)}::text::jsonb, s.metadata),
      state = coalesce(${change.state ?? null}, s.state),
      lookup_key = case when ${change.lookupKey !== undefined} then ${change.lookupKey ?? null} else s.lookup_key end,
      next_pull_at = ${change.nextPullAt},
      credentials = ${change.credentials}, credentials_for = ${change.credentialsFor},
      version_retention_days = case when ${days !== undefined} then ${days ?? null}::integer
        else s.version_retention_days end,
      versions_from = case when ${days == null} or s.version_retention_days is not null then s.versions_from
        else date_trunc('milliseconds', clock_timestamp()) end,
      updated_at = now()
    where ${inScope(db, caller, 's')} and s.id = ${id} returning ${viewColumns(db, caller, caller)}`.first();
}

export async function sourceExists(db: Db, caller: Caller, id: string): Promise<boolean> {
  return db`select 1 from knowledge_sources s where s.id = ${id} and ${sourceVisible(db, caller, 's')}`.any();
}

/** Counts those sources that are visible to the caller. */
export async function countVisibleSources(db: Db, caller: Caller, ids: readonly string[]): Promise<number> {
  const { count } = await db`
    select 1 from knowledge_sources s where s.id = any(${ids}::uuid[]) and ${sourceVisible(db, caller, 's')}`;
  return count;
}

export async function threadExists(db: Db, caller: Caller, id: string): Promise<boolean> {
  return db`select 1 from threads t where t.id = ${id} and ${ownedVisible(db, caller, 't')}`.any();
}

/** Locks and returns the source whose schedule has been due for longest. */
export async function lockDueSource(tx: Db, now: Date): Promise<SourceRow | undefined> {
  return tx<SourceRow[]>`
    select * from knowledge_sources s where next_pull_at <= ${now} and state = 'active' and ${isInUse(tx, 's.app_id')}
      and ${sandboxIsThere(tx, 's.app_id', 's.sandbox_id')}
    order by next_pull_at limit 1 for update skip locked`.first();
}

export async function setNextPull(db: Db, appId: string, id: string, nextPullAt: Date | null): Promise<void> {
  await db`update knowledge_sources set next_pull_at = ${nextPullAt} where app_id = ${appId} and id = ${id}`;
}

/** Sources of a kind that installations created for an agent. */
export function listInstalledSources(db: Db, appId: string, agentId: string, type: string) {
  return db<SourceRow[]>`
    select * from knowledge_sources
    where app_id = ${appId} and agent_id = ${agentId} and type = ${type} and installation_id is not null
    order by created_at, id limit 100`;
}
