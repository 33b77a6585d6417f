/*
 * Triggers of knowledge_models: knowledge_models_placed copies the sandbox of the source; knowledge_models_added,
 * knowledge_models_changed and knowledge_models_given_back count bytes against the quota. grow_knowledge_model counts
 * new codes, or deletes the model when they are over it.
 */
import { readBundle } from '../../content/postings.ts';
import type { StemLanguage } from '../../content/terms.ts';
import type { Db, Statement, Transaction } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import { noLimit } from '../../tenancy/quotas.ts';
import { lockSource, type SourceKey } from '../index/store.ts';

type Due = {
  chunksMin: number;
  /** New chunks as a fraction of those that the model was trained for. */
  growth: number;
  /** The same fraction for a source with an active ingestion. */
  activeGrowth: number;
  /** The age that a model must have before it is replaced because of this growth. */
  ageSeconds: number;
  /** The same for a source into which nothing has been written for this time, and whose model is older than this. */
  quiet: { growth: number; seconds: number; ageSeconds: number };
  count: number;
  appId: string | undefined;
};

/** Sources that have no model or have grown. A source whose model was over the quota waits until there is room. */
export function listDue(db: Db, due: Due) {
  return db<SourceKey[]>`
    select i.app_id, i.source_id
    from knowledge_indexes i left join knowledge_models m on m.app_id = i.app_id and m.source_id = i.source_id
    where ${due.appId === undefined ? db`true` : db`i.app_id = ${due.appId}`} and i.chunk_count - i.restricted_chunks >= ${due.chunksMin}
      and (m.version is null or m.dimensions = 0 or ${isQuietAndOld(db, due.quiet)}
        or m.trained_at < now() - make_interval(secs => ${due.ageSeconds})
          and i.open_added - m.open_added >= m.chunk_count * case
            when exists (select from knowledge_ingestions g where g.app_id = i.app_id and g.source_id = i.source_id
              and g.status in ('pending', 'running', 'awaiting_callback') and not g.queued)
            then ${due.activeGrowth}::float8 else ${due.growth}::float8 end)
      and (m.lease_until is null or m.lease_until < now())
      and (m.refused_bytes is null or ${hasRoom(db, db`m.refused_bytes`)}) and ${isInUse(db, 'i.app_id')}
    order by i.app_id, i.chunk_count - i.restricted_chunks limit ${due.count}`;
}

/** SQL: whether nothing changes the source of the model `m` any more, and the model has not seen a part of it. */
function isQuietAndOld(db: Db, { growth, seconds, ageSeconds }: Due['quiet']): Statement {
  return db`(i.open_added - m.open_added >= m.chunk_count * ${growth}::float8
    and m.trained_at < now() - make_interval(secs => ${ageSeconds})
    and not exists (select from knowledge_ingestions g where g.app_id = i.app_id and g.source_id = i.source_id
      and g.status in ('pending', 'running', 'awaiting_callback') and not g.queued)
    and not exists (select from (select updated_at from knowledge_ingestions g
      where g.app_id = i.app_id and g.source_id = i.source_id order by g.created_at desc, g.id desc limit 1) newest
      where newest.updated_at > now() - make_interval(secs => ${seconds})))`;
}

/** SQL: whether this many bytes in place of those of the model `m` are within the quota of its app. */
function hasRoom(db: Db, bytes: Statement): Statement {
  return db`app_used(m.app_id, m.sandbox_id, 'file_bytes') - m.bytes + ${bytes}
    <= coalesce(quota_bound(m.app_id, 'file_bytes'), ${noLimit})`;
}

/** Whether a model of this size currently fits in the quota. */
export async function modelFits(db: Db, key: SourceKey, bytes: number): Promise<boolean> {
  const [row] = await db<{ fits: boolean }[]>`
    select ${hasRoom(db, db`${bytes}::bigint`)} as fits from knowledge_models m
    where m.app_id = ${key.appId} and m.source_id = ${key.sourceId}`;
  return row?.fits ?? false;
}

/**
 * Claims the training of a source's model, unless another source of the app is being learned. Returns the current
 * version of its model, 0 without one; undefined if the claim failed.
 */
export async function claimModel(
  db: Db,
  key: SourceKey,
  holder: string,
  leaseSeconds: number,
): Promise<number | undefined> {
  return db.begin(async (tx) => {
    await lockSource(tx, key);
    await tx`select pg_advisory_xact_lock(hashtextextended('knowledge-learn ' || ${key.appId}::text, 0))`;
    const [model] = await tx<{ version: number }[]>`
      insert into knowledge_models (app_id, source_id, lease_holder, lease_until)
      select i.app_id, i.source_id, ${holder}::uuid, now() + make_interval(secs => ${leaseSeconds})
      from knowledge_indexes i
      where i.app_id = ${key.appId} and i.source_id = ${key.sourceId} and not exists (
        select 1 from knowledge_models m
        where m.app_id = ${key.appId} and m.lease_holder is not null and m.lease_until >= now())
      on conflict (app_id, source_id) do update set lease_holder = excluded.lease_holder, lease_until = excluded.lease_until
      returning version`;
    return model?.version;
  });
}

/** Renews the claim. Returns false if it was lost or the source was deleted. */
export async function renewClaim(db: Db, key: SourceKey, holder: string, leaseSeconds: number): Promise<boolean> {
  const { count } = await db`
    update knowledge_models set lease_until = now() + make_interval(secs => ${leaseSeconds})
    where app_id = ${key.appId} and source_id = ${key.sourceId} and lease_holder = ${holder}`;
  return count > 0;
}

/** Ends the claim; the source is not due again before `pauseSeconds` have passed. */
export async function releaseClaim(db: Db, key: SourceKey, holder: string, pauseSeconds: number): Promise<void> {
  await db`
    update knowledge_models set lease_holder = null, lease_until = now() + make_interval(secs => ${pauseSeconds})
    where app_id = ${key.appId} and source_id = ${key.sourceId} and lease_holder = ${holder}`;
}

/** Ends the claim on a source whose new model would take `bytes`, more than its app may store. */
export async function refuseModel(db: Db, key: SourceKey, holder: string, bytes: number): Promise<void> {
  await db`
    update knowledge_models set lease_holder = null, lease_until = null, refused_bytes = ${bytes}
    where app_id = ${key.appId} and source_id = ${key.sourceId} and lease_holder = ${holder}`;
}

/** Facts about a source's index that training needs. */
export type IndexFacts = {
  languages: StemLanguage[];
  firstOrdinal: number;
  nextOrdinal: number;
  /** Chunks and words of the documents that every reader of the source sees, and the chunks ever added to such. */
  chunkCount: number;
  wordCount: number;
  openAdded: number;
};

export async function readIndexFacts(db: Db, key: SourceKey): Promise<IndexFacts | undefined> {
  return db<IndexFacts[]>`
    select i.languages, i.first_ordinal, i.next_ordinal, i.chunk_count - i.restricted_chunks as chunk_count,
      i.word_count - case when i.restricted_chunks = 0 then 0 else (
        select coalesce(sum(d.word_count), 0) from knowledge_documents d
        where d.app_id = ${key.appId} and d.source_id = i.source_id and d.acl_id is not null) end as word_count,
      i.open_added
    from knowledge_indexes i where i.app_id = ${key.appId} and i.source_id = ${key.sourceId}`.first();
}

/** The ordinals that a model must not learn from: of deleted chunks, and of restricted documents. */
export function listHiddenRanges(db: Db, key: SourceKey) {
  return db<{ firstOrdinal: number; chunkCount: number }[]>`
    select first_ordinal, chunk_count from knowledge_dead_ranges
    where app_id = ${key.appId} and source_id = ${key.sourceId}
    union all
    select first_ordinal, chunk_count from knowledge_documents
    where app_id = ${key.appId} and source_id = ${key.sourceId} and acl_id is not null and chunk_count > 0`;
}

const rowsPerRead = 500;

/** The postings of all terms that may contain ordinals of a range, in batches and in no particular order. */
export async function* readRange(tx: Transaction, key: SourceKey, from: number, to: number) {
  const postings = tx<{ term: string; postings: Buffer }[]>`
    select p.term, p.postings from knowledge_segments g
    join knowledge_postings p on p.app_id = g.app_id and p.segment = g.segment
    where g.app_id = ${key.appId} and g.source_id = ${key.sourceId}
      and g.last_ordinal >= ${from} and g.first_ordinal < ${to}`;
  yield* tx.cursor(postings, rowsPerRead);
  const bundles = tx<{ content: Buffer }[]>`
    select content from knowledge_bundles where app_id = ${key.appId} and source_id = ${key.sourceId}
      and first_ordinal + chunk_count > ${from} and first_ordinal < ${to}`;
  for await (const rows of tx.cursor(bundles, rowsPerRead)) for (const row of rows) yield readBundle(row.content);
}

export async function insertWords(
  db: Db,
  key: SourceKey,
  version: number,
  words: { term: string; frequency: number; vector: Buffer }[],
): Promise<void> {
  await db`
    insert into knowledge_model_terms (app_id, source_id, version, term, frequency, vector)
    select ${key.appId}::uuid, ${key.sourceId}::uuid, ${version}::int, w.*
    from unnest(${words.map((word) => word.term)}::text[], ${words.map((word) => word.frequency)}::float4[],
      ${words.map((word) => `\\x${word.vector.toString('hex')}`)}::text[]::bytea[]) w`;
}

export async function insertCodes(
  db: Db,
  key: SourceKey,
  version: number,
  codes: { firstOrdinal: number; chunkCount: number; codeVersion: number; content: Buffer },
): Promise<void> {
  await db`
    insert into knowledge_model_codes (app_id, source_id, version, first_ordinal, chunk_count, code_version, content)
    values (${key.appId}, ${key.sourceId}, ${version}, ${codes.firstOrdinal}, ${codes.chunkCount},
      ${codes.codeVersion}, ${codes.content})`;
}

/** The version of a source's model, and its counted bytes. */
export async function readModelSize(db: Db, key: SourceKey) {
  return db<{ version: number; bytes: number }[]>`
    select version, bytes from knowledge_models where app_id = ${key.appId} and source_id = ${key.sourceId}`.first();
}

/** The bytes that a stored version takes. */
export async function measureVersion(db: Db, key: SourceKey, version: number): Promise<number> {
  const of = db`app_id = ${key.appId} and source_id = ${key.sourceId} and version = ${version}`;
  const [row] = await db<[{ bytes: number }]>`
    select (select coalesce(sum(octet_length(term) + 4 + octet_length(vector)), 0)::bigint
        from knowledge_model_terms where ${of})
      + (select coalesce(sum(octet_length(content)), 0)::bigint from knowledge_model_codes where ${of}) as bytes`;
  return row.bytes;
}

/**
 * Makes a complete version the source's model. The index must be locked. Returns false if the claim was lost. If the
 * quota would be exceeded, throws an error that `quotaError` translates.
 */
export async function installModel(
  tx: Transaction,
  key: SourceKey,
  holder: string,
  model: {
    version: number;
    dimensions: number;
    words: number;
    chunkCount: number;
    nextOrdinal: number;
    openAdded: number;
    bytes: number;
  },
): Promise<boolean> {
  const { count } = await tx`
    update knowledge_models set version = ${model.version}, dimensions = ${model.dimensions},
      word_count = ${model.words}, chunk_count = ${model.chunkCount}, next_ordinal = ${model.nextOrdinal}, open_added = ${model.openAdded},
      word_bytes = (
        select coalesce(sum(octet_length(t.term) + 4 + octet_length(t.vector)), 0) from knowledge_model_terms t
        where t.app_id = ${key.appId} and t.source_id = ${key.sourceId} and t.version = ${model.version}),
      bytes = ${model.bytes}, refused_bytes = null, code_version = 1, trained_at = now(), lease_holder = null, lease_until = null
    where app_id = ${key.appId} and source_id = ${key.sourceId} and lease_holder = ${holder}`;
  return count > 0;
}

/** The version of a source's model; 0 while it has none. */
export async function readVersion(db: Db, key: SourceKey): Promise<number | undefined> {
  const [row] = await db<{ version: number }[]>`
    select version from knowledge_models where app_id = ${key.appId} and source_id = ${key.sourceId}`;
  return row?.version;
}

/** Deletes the rows of other versions: replaced ones, and one that was never completed. */
export async function deleteOtherVersions(db: Db, key: SourceKey, version: number): Promise<void> {
  const other = db`app_id = ${key.appId} and source_id = ${key.sourceId} and version <> ${version}`;
  await db`delete from knowledge_model_terms where ${other}`;
  await db`delete from knowledge_model_codes where ${other}`;
}

/** Deletes the codes of a source below an ordinal where nothing is live any more. */
export async function deleteCodesBelow(tx: Transaction, key: SourceKey, ordinal: number): Promise<void> {
  await tx`
    with gone as (
      delete from knowledge_model_codes where app_id = ${key.appId} and source_id = ${key.sourceId}
        and first_ordinal + chunk_count <= ${ordinal}
      returning version, octet_length(content) as bytes)
    update knowledge_models m set refused_bytes = null,
      bytes = m.bytes - (select coalesce(sum(g.bytes), 0) from gone g where g.version = m.version)
    where m.app_id = ${key.appId} and m.source_id = ${key.sourceId}`;
}

/**
 * Discards the model of a locked index, and one that is being trained, because a document that it has learned from is
 * no longer for every reader.
 */
export async function discardModel(tx: Transaction, key: SourceKey): Promise<void> {
  const of = tx`app_id = ${key.appId} and source_id = ${key.sourceId}`;
  const { count } = await tx`
    update knowledge_models set version = version + 1, dimensions = 0, bytes = 0, refused_bytes = null,
      lease_holder = null, lease_until = null
    where ${of} and (dimensions > 0 or lease_holder is not null)`;
  if (count === 0) return;
  await tx`delete from knowledge_model_terms where ${of}`;
  await tx`delete from knowledge_model_codes where ${of}`;
}

/** The vectors of these words in a model's version, unordered. */
export function listWords(db: Db, key: SourceKey, version: number, terms: string[]) {
  return db<{ term: string; vector: Buffer }[]>`
    select term, vector from knowledge_model_terms
    where app_id = ${key.appId} and source_id = ${key.sourceId} and version = ${version}
      and term = any(${terms}::text[])`;
}

/**
 * Counts an addition to the codes of a locked index's model, and its bytes. Returns undefined if they exceed the quota;
 * the source then has no model.
 */
export async function growModel(tx: Transaction, key: SourceKey, bytes: number): Promise<number | undefined> {
  const [row] = await tx<[{ codeVersion: number }]>`
    select grow_knowledge_model(${key.appId}, ${key.sourceId}, ${bytes}) as code_version`;
  return row.codeVersion === 0 ? undefined : row.codeVersion;
}
