import type { PackedVector } from '../../content/embed/codes.ts';
import { type MergedPostings, mergeBundles, placeBundle } from '../../content/postings.ts';
import type { PreparedText } from '../../content/prepare.ts';
import type { StemLanguage } from '../../content/terms.ts';
import { joinBytes } from '../../db/bytes.ts';
import type { Db, Transaction } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import { newUuid } from '../../lib/ids.ts';

/** A source's key in the index. */
export type SourceKey = { appId: string; sourceId: string };

export type IndexState = {
  languages: StemLanguage[];
  firstOrdinal: number;
  nextOrdinal: number;
  chunkCount: number;
  wordCount: number;
  bundledDocuments: number;
  bundledChunks: number;
  vectorVersion: number;
  /** Counts the changes of restricted documents; 0 if there never was one. */
  aclVersion: number;
  /** The version of the source's learned model; 0 if there is none. */
  modelVersion: number;
  modelDimensions: number;
  /** The spaces of the embedder that the source has named; null for the installation's. Undefined if it never did. */
  embedder: { space: string | null; servingSpace: string | null } | undefined;
};

/** Bundles with this many documents or chunks become a segment. */
const bundleDocumentsMax = 32;
const bundleChunksMax = 1_024;
/** This many segments of one level are merged into one of the next. */
const segmentsPerLevel = 8;

/**
 * The version of text analysis (`content/terms.ts`, `content/language.ts`). Increase it when they change: a job then
 * reads the texts of indexes with another version again.
 */
export const analysisVersion = 1;

export async function insertIndex(db: Db, key: SourceKey): Promise<void> {
  await db`
    insert into knowledge_indexes (app_id, source_id, analysis) values (${key.appId}, ${key.sourceId}, ${analysisVersion})`;
}

/**
 * Locks the source's index until the transaction ends; undefined if the source was deleted. Locks the source first, in
 * the same order as its deletion, so that the two cannot deadlock. Everything else of the source comes after its index:
 * a transaction that changes its ingestions, items of syncs and documents takes this lock before. Tests refuse the
 * statements of one that does not (`test/support/lock-order.ts`).
 */
export async function lockIndex(tx: Transaction, key: SourceKey): Promise<IndexState | undefined> {
  const source = lockSource(tx, key);
  const index = tx<Omit<IndexState, keyof LearnedState>[]>`
    select languages, first_ordinal, next_ordinal, chunk_count, word_count, bundled_documents, bundled_chunks,
      vector_version, acl_version
    from knowledge_indexes where app_id = ${key.appId} and source_id = ${key.sourceId} for update`;
  // A separate statement, because one that waits for the lock would read these as they were before.
  const learned = tx<[Omit<LearnedState, 'embedder'> & { embedder: IndexState['embedder'] | null }]>`
    select coalesce(m.version, 0) as model_version, coalesce(m.dimensions, 0) as model_dimensions,
      case when e.source_id is not null
        then jsonb_build_object('space', e.space, 'servingSpace', e.serving_space) end as embedder
    from (values (${key.appId}::uuid, ${key.sourceId}::uuid)) k (app_id, source_id)
    left join knowledge_models m on m.app_id = k.app_id and m.source_id = k.source_id and m.dimensions > 0
    left join knowledge_embedders e on e.app_id = k.app_id and e.source_id = k.source_id`;
  const [[row], [known]] = await Promise.all([index, learned, source]);
  return row && { ...row, ...known, embedder: known.embedder ?? undefined };
}

type LearnedState = Pick<IndexState, 'modelVersion' | 'modelDimensions' | 'embedder'>;

/**
 * Prevents the deletion of the source and its owners until the transaction ends. Take this lock before any other one,
 * and owners before the source, because a deletion proceeds from an owner to what it owns.
 */
export async function lockSource(tx: Transaction, { appId, sourceId }: SourceKey): Promise<void> {
  const owners = tx`
    with source as materialized (
      select org_id, team_id, user_id, agent_id from knowledge_sources where app_id = ${appId} and id = ${sourceId}),
    org as materialized (
      select 1 from orgs where app_id = ${appId} and id = (select org_id from source) for key share),
    team as materialized (
      select 1 from teams where app_id = ${appId} and id = (select team_id from source) for key share),
    owner as materialized (
      select 1 from users where app_id = ${appId} and id = (select user_id from source) for key share),
    agent as materialized (
      select 1 from agents where app_id = ${appId} and id = (select agent_id from source) for key share)
    select (select count(*) from org), (select count(*) from team), (select count(*) from owner),
      (select count(*) from agent)`;
  const source = tx`select 1 from knowledge_sources where app_id = ${appId} and id = ${sourceId} for key share`;
  await Promise.all([owners, source]);
}

/** A document whose chunks are added: whether it is restricted, and whether it moves or is new to the source. */
type Appended = { id: string; isRestricted: boolean; moves: boolean } & Pick<
  PreparedText,
  'chunks' | 'bundles' | 'language'
>;

/** Postings of consecutive chunks, from the first one's ordinal. */
type Bundle = { firstOrdinal: number; chunkCount: number; content: Buffer };

/**
 * Adds the chunks of documents to the locked index, in this order, from `state.nextOrdinal` on. Returns the bundles that
 * complete a segment, which are not stored: `flushBundles` must follow.
 */
export async function appendChunks(
  tx: Transaction,
  key: SourceKey,
  state: IndexState,
  documents: readonly Appended[],
): Promise<Bundle[]> {
  const first = state.nextOrdinal;
  state.aclVersion += documents.filter((document) => document.isRestricted).length;
  const written = documents.filter(({ chunks }) => chunks.length > 0);
  if (written.length === 0) return [];
  const chunks = written.flatMap((document) => document.chunks);
  const chunkCount = (some: readonly Appended[]) => some.reduce((sum, document) => sum + document.chunks.length, 0);
  const open = written.filter(({ isRestricted }) => !isRestricted);
  const chunkRows = tx`
    insert into knowledge_chunks (app_id, source_id, document_id, ordinal, id, start_byte, end_byte, start_line,
      end_line, start_page, end_page, heading_path, fragment, hash)
    select ${key.appId}::uuid, ${key.sourceId}::uuid, c.*
    from unnest(${written.flatMap((document) => document.chunks.map(() => document.id))}::uuid[],
      ${chunks.map((_chunk, i) => first + i)}::int[], ${chunks.map(() => newUuid())}::uuid[],
      ${chunks.map((chunk) => chunk.startByte)}::int[], ${chunks.map((chunk) => chunk.endByte)}::int[],
      ${chunks.map((chunk) => chunk.startLine)}::int[], ${chunks.map((chunk) => chunk.endLine)}::int[],
      ${chunks.map((chunk) => chunk.startPage ?? null)}::int[], ${chunks.map((chunk) => chunk.endPage ?? null)}::int[],
      ${chunks.map((chunk) => JSON.stringify(chunk.headingPath))}::text[]::jsonb[],
      ${chunks.map((chunk) => chunk.fragment ?? null)}::text[],
      ${chunks.map((chunk) => `\\x${chunk.hash}`)}::text[]::bytea[]) c`;
  const statistics = tx`
    update knowledge_indexes set next_ordinal = next_ordinal + ${chunks.length},
      chunk_count = chunk_count + ${chunks.length},
      word_count = word_count + ${chunks.reduce((sum, chunk) => sum + chunk.words, 0)},
      bundled_documents = bundled_documents + ${written.length}, bundled_chunks = bundled_chunks + ${chunks.length},
      acl_version = ${state.aclVersion}, restricted_chunks = restricted_chunks + ${chunks.length - chunkCount(open)},
      open_added = open_added + ${chunkCount(open.filter(({ moves }) => !moves))},
      languages = languages || array(
        select l.language from unnest(${[...new Set(open.map(({ language }) => language))]}::text[])
          with ordinality l (language, place)
        where l.language <> all(languages) order by l.place)
    where app_id = ${key.appId} and source_id = ${key.sourceId}`;
  const bundles = placeBundles(first, written);
  state.nextOrdinal += chunks.length;
  state.bundledDocuments += written.length;
  state.bundledChunks += chunks.length;
  const isFull = state.bundledDocuments >= bundleDocumentsMax || state.bundledChunks >= bundleChunksMax;
  // These are sent together. The connection runs them in order.
  await Promise.all([chunkRows, isFull ? undefined : insertBundles(tx, key, bundles), statistics]);
  return isFull ? bundles : [];
}

/** The bundles of consecutive documents, the first of which starts at an ordinal. */
function placeBundles(first: number, documents: readonly Appended[]): Bundle[] {
  let next = first;
  return documents
    .flatMap(({ bundles }) => bundles)
    .map(({ chunkCount, content }) => {
      const firstOrdinal = next;
      next += chunkCount;
      return { firstOrdinal, chunkCount, content: placeBundle(content, firstOrdinal) };
    });
}

async function insertBundles(tx: Transaction, key: SourceKey, bundles: readonly Bundle[]): Promise<void> {
  const { all, starts, sizes } = joinBytes(bundles.map(({ content }) => content));
  await tx`
    insert into knowledge_bundles (app_id, source_id, first_ordinal, chunk_count, content)
    select ${key.appId}::uuid, ${key.sourceId}::uuid, b.ordinal, b.chunk_count,
      substring(${all}::bytea from b.start for b.size)
    from unnest(${bundles.map((bundle) => bundle.firstOrdinal)}::int[],
      ${bundles.map((bundle) => bundle.chunkCount)}::int[], ${starts}::int[], ${sizes}::int[])
      b (ordinal, chunk_count, start, size)`;
}

/** Removes a document's chunks from the locked index. Searches that begin after the commit do not see them. */
export async function removeChunks(
  tx: Transaction,
  key: SourceKey,
  range: { firstOrdinal: number; chunkCount: number; wordCount: number; aclId: string | null },
): Promise<void> {
  if (range.chunkCount === 0) return;
  const end = range.firstOrdinal + range.chunkCount;
  await tx`
    insert into knowledge_dead_ranges (app_id, source_id, first_ordinal, chunk_count)
    values (${key.appId}, ${key.sourceId}, ${range.firstOrdinal}, ${range.chunkCount})`;
  await tx`
    delete from knowledge_chunks where app_id = ${key.appId} and source_id = ${key.sourceId}
      and ordinal >= ${range.firstOrdinal} and ordinal < ${end}`;
  await tx`
    delete from knowledge_vectors where app_id = ${key.appId} and source_id = ${key.sourceId}
      and ordinal >= ${range.firstOrdinal} and ordinal < ${end}`;
  await tx`
    delete from knowledge_codes where app_id = ${key.appId} and source_id = ${key.sourceId}
      and first_ordinal >= ${range.firstOrdinal} and first_ordinal < ${end}`;
  await tx`
    update knowledge_indexes set chunk_count = chunk_count - ${range.chunkCount},
      word_count = word_count - ${range.wordCount},
      restricted_chunks = restricted_chunks - ${range.aclId === null ? 0 : range.chunkCount}
    where app_id = ${key.appId} and source_id = ${key.sourceId}`;
}

/** Keeps the languages of the locked index that a document has which every reader sees. */
export async function dropUnusedLanguages(tx: Transaction, key: SourceKey): Promise<void> {
  await tx`
    update knowledge_indexes i set languages = array(
      select u.language from unnest(i.languages) with ordinality u (language, place)
      where exists (select from knowledge_documents d where d.app_id = ${key.appId} and d.source_id = i.source_id
        and d.language = u.language and d.acl_id is null and d.chunk_count > 0)
      order by u.place)
    where i.app_id = ${key.appId} and i.source_id = ${key.sourceId}`;
}

/** Counts the chunks of a document of the locked index as restricted or not, and adds its language if they are not. */
export async function countRestricted(
  tx: Transaction,
  key: SourceKey,
  state: IndexState,
  document: { chunkCount: number; language: StemLanguage; aclId: string | null },
  wasRestricted: boolean,
): Promise<void> {
  const { chunkCount, language, aclId } = document;
  const change = (aclId === null ? 0 : chunkCount) - (wasRestricted ? chunkCount : 0);
  const adds = aclId === null && chunkCount > 0;
  state.aclVersion += 1;
  await tx`
    update knowledge_indexes set acl_version = ${state.aclVersion}, restricted_chunks = restricted_chunks + ${change},
      open_added = open_added + ${adds && wasRestricted ? chunkCount : 0},
      languages = case when not ${adds} or ${language} = any(languages) then languages
        else languages || ${language}::text end
    where app_id = ${key.appId} and source_id = ${key.sourceId}`;
  if (aclId !== null) await dropUnusedLanguages(tx, key);
}

/**
 * Sorts the bundles of the locked index, and those after them that `appendChunks` returned, by term into one segment, or
 * into several if there are many.
 */
export async function flushBundles(
  tx: Transaction,
  key: SourceKey,
  state: IndexState,
  added: readonly Bundle[] = [],
): Promise<void> {
  const of = tx`app_id = ${key.appId} and source_id = ${key.sourceId}`;
  const stored = await tx<Bundle[]>`
    delete from knowledge_bundles where ${of} returning first_ordinal, chunk_count, content`;
  stored.sort((a, b) => a.firstOrdinal - b.firstOrdinal);
  let chunks = 0;
  let group: Bundle[] = [];
  const flush = async () => {
    if (group.length > 0) await writeSegment(tx, key, group);
    group = [];
    chunks = 0;
  };
  for (const bundle of [...stored, ...added]) {
    if (chunks + bundle.chunkCount > bundleChunksMax) await flush();
    group.push(bundle);
    chunks += bundle.chunkCount;
  }
  await flush();
  if (stored.length + added.length === 0) return;
  await tx`update knowledge_indexes set bundled_documents = 0, bundled_chunks = 0 where ${of}`;
  state.bundledDocuments = 0;
  state.bundledChunks = 0;
}

/** Writes the contents of consecutive bundles as one segment. */
async function writeSegment(tx: Transaction, key: SourceKey, bundles: readonly Bundle[]): Promise<void> {
  const segment = await nextSegment(tx);
  await insertPostings(tx, key, segment, mergeBundles(bundles.map(({ content }) => content)));
  const first = bundles[0]?.firstOrdinal ?? 0;
  const last = bundles.at(-1);
  const end = (last?.firstOrdinal ?? 0) + (last?.chunkCount ?? 0);
  await tx`
    insert into knowledge_segments (app_id, source_id, segment, level, first_ordinal, last_ordinal)
    values (${key.appId}, ${key.sourceId}, ${segment}, 0, ${first}, ${end - 1})`;
}

const postingRowsPerInsert = 4_000;

async function insertPostings(tx: Transaction, key: SourceKey, segment: number, merged: MergedPostings) {
  for (let from = 0; from < merged.terms.length; from += postingRowsPerInsert) {
    const to = Math.min(merged.terms.length, from + postingRowsPerInsert);
    const postings = cutParts(merged.postings, from, to);
    const positions = cutParts(merged.positions, from, to);
    await tx`
      insert into knowledge_postings (app_id, segment, term, postings, positions)
      select ${key.appId}::uuid, ${segment}::bigint, p.term,
        substring(${postings.all}::bytea from p.start for p.size),
        substring(${positions.all}::bytea from p.positions_start for p.positions_size)
      from unnest(${merged.terms.slice(from, to)}::text[], ${postings.starts}::int[], ${postings.sizes}::int[],
        ${positions.starts}::int[], ${positions.sizes}::int[])
        p (term, start, size, positions_start, positions_size)`;
  }
}

/** Consecutive parts, as parts of a value of their own. */
function cutParts({ all, starts, sizes }: MergedPostings['postings'], from: number, to: number) {
  const before = (starts[from] ?? 1) - 1;
  const end = (starts[to - 1] ?? 1) - 1 + (sizes[to - 1] ?? 0);
  return {
    all: all.subarray(before, end),
    starts: starts.slice(from, to).map((start) => start - before),
    sizes: sizes.slice(from, to),
  };
}

/**
 * Merges the segments of one full level into one segment of the next level, inside the database. Returns whether there
 * was a full level: repeat until it returns false. Searches and writers continue meanwhile, because segments never
 * change, and the commit removes the old ones.
 */
export async function mergeSegments(tx: Transaction, key: SourceKey): Promise<boolean> {
  const [lock] = await tx<{ mine: boolean }[]>`
    select pg_try_advisory_xact_lock(hashtextextended('knowledge-merge ' || ${key.sourceId}::text, 0)) as mine`;
  if (!lock?.mine) return false;
  const full = await tx<{ level: number; segments: number[]; firstOrdinal: number; lastOrdinal: number }[]>`
    select level, array_agg(segment order by first_ordinal) as segments, min(first_ordinal) as first_ordinal,
      max(last_ordinal) as last_ordinal
    from knowledge_segments where app_id = ${key.appId} and source_id = ${key.sourceId}
    group by level having count(*) >= ${segmentsPerLevel} order by level limit 1`;
  const [level] = full;
  if (!level) return false;
  const merged = await nextSegment(tx);
  await tx`
    insert into knowledge_postings (app_id, segment, term, postings, positions)
    select app_id, ${merged}::bigint, term, string_agg(postings, ''::bytea order by segment),
      string_agg(positions, ''::bytea order by segment)
    from knowledge_postings
    where app_id = ${key.appId} and segment = any(${level.segments}::bigint[])
    group by app_id, term order by term`;
  await tx`
    delete from knowledge_postings
    where app_id = ${key.appId} and segment = any(${level.segments}::bigint[])`;
  await tx`
    delete from knowledge_segments
    where app_id = ${key.appId} and source_id = ${key.sourceId} and segment = any(${level.segments}::bigint[])`;
  await tx`
    insert into knowledge_segments (app_id, source_id, segment, level, first_ordinal, last_ordinal)
    values (${key.appId}, ${key.sourceId}, ${merged}, ${level.level + 1}, ${level.firstOrdinal}, ${level.lastOrdinal})`;
  return true;
}

async function nextSegment(tx: Transaction): Promise<number> {
  const [row] = await tx<{ segment: number }[]>`select nextval('knowledge_segment_numbers') as segment`;
  if (!row) throw new Error('A sequence always has a next number.');
  return row.segment;
}

/**
 * Drops the locked index below an ordinal where nothing is live any more. Does nothing while a segment reaches across
 * the ordinal; a later run drops it.
 */
export async function deleteIndexBelow(tx: Transaction, key: SourceKey, ordinal: number): Promise<void> {
  const of = tx`app_id = ${key.appId} and source_id = ${key.sourceId}`;
  const across = await tx`
    select 1 from knowledge_segments where ${of} and first_ordinal < ${ordinal} and last_ordinal >= ${ordinal}`;
  if (across.count > 0) return;
  await tx`
    delete from knowledge_postings where app_id = ${key.appId} and segment in (
      select segment from knowledge_segments where ${of} and last_ordinal < ${ordinal})`;
  await tx`delete from knowledge_segments where ${of} and last_ordinal < ${ordinal}`;
  await tx`delete from knowledge_dead_ranges where ${of} and first_ordinal < ${ordinal}`;
  await tx`delete from knowledge_vectors where ${of} and ordinal < ${ordinal}`;
  await tx`delete from knowledge_codes where ${of} and first_ordinal < ${ordinal}`;
  await tx`
    update knowledge_indexes set first_ordinal = ${ordinal}, analysis = ${analysisVersion}, languages = array(
      select distinct language from knowledge_documents
      where app_id = ${key.appId} and source_id = ${key.sourceId} and chunk_count > 0 and acl_id is null
      order by language)
    where ${of}`;
}

/**
 * Sources with more dead than live chunks in the index and at least `deadMin` dead ones, and sources whose words
 * another version of the analysis has read.
 */
export function listSourcesToCompact(db: Db, deadMin: number, count: number) {
  return db<SourceKey[]>`
    select app_id, source_id from knowledge_indexes i
    where (next_ordinal - first_ordinal - chunk_count > greatest(chunk_count, ${deadMin}) or analysis <> ${analysisVersion})
      and ${isInUse(db, 'i.app_id')} limit ${count}`;
}

export type StoredVector = PackedVector & { ordinal: number };

/**
 * Stores vectors in the locked index: those of each document in ascending order of their ordinals. The codes of one
 * document are deleted with it, so no row has those of two.
 */
export async function insertVectors(
  tx: Transaction,
  key: SourceKey,
  state: IndexState,
  model: string,
  ofDocuments: readonly StoredVector[][],
): Promise<void> {
  const vectors = ofDocuments.flat();
  if (vectors.length === 0) return;
  state.vectorVersion += 1;
  const runs = ofDocuments.flatMap(joinRuns);
  const packed = joinBytes(vectors.map((one) => one.vector));
  const codes = joinBytes(runs.map((run) => Buffer.concat(run.codes)));
  await Promise.all([
    tx`
    update knowledge_indexes set vector_version = ${state.vectorVersion}
    where app_id = ${key.appId} and source_id = ${key.sourceId}`,
    tx`
    insert into knowledge_vectors (app_id, source_id, ordinal, model, content)
    select ${key.appId}::uuid, ${key.sourceId}::uuid, v.ordinal, ${model}::text,
      substring(${packed.all}::bytea from v.start for v.size)
    from unnest(${vectors.map((one) => one.ordinal)}::int[], ${packed.starts}::int[], ${packed.sizes}::int[])
      v (ordinal, start, size)
    on conflict do nothing`,
    tx`
    insert into knowledge_codes (app_id, source_id, model, first_ordinal, chunk_count, version, content)
    select ${key.appId}::uuid, ${key.sourceId}::uuid, ${model}::text, r.first_ordinal, r.chunk_count,
      ${state.vectorVersion}::bigint, substring(${codes.all}::bytea from r.start for r.size)
    from unnest(${runs.map((run) => run.first)}::int[], ${runs.map((run) => run.codes.length)}::int[],
      ${codes.starts}::int[], ${codes.sizes}::int[]) r (first_ordinal, chunk_count, start, size)
    on conflict do nothing`,
  ]);
}

/** Joins the codes of consecutive ordinals. */
function joinRuns(vectors: StoredVector[]): { first: number; codes: Uint8Array[] }[] {
  const runs: { first: number; codes: Uint8Array[] }[] = [];
  for (const { ordinal, code } of vectors) {
    const run = runs.at(-1);
    if (run && run.first + run.codes.length === ordinal) run.codes.push(code);
    else runs.push({ first: ordinal, codes: [code] });
  }
  return runs;
}

/** The stored vectors of a range of ordinals, in ascending order: those of a model, or of all. */
export function listVectors(db: Db, key: SourceKey, model: string | undefined, from: number, to: number) {
  return db<{ ordinal: number; model: string; content: Buffer }[]>`
    select ordinal, model, content from knowledge_vectors
    where app_id = ${key.appId} and source_id = ${key.sourceId}
      and ${model === undefined ? db`true` : db`model = ${model}`}
      and ordinal >= ${from} and ordinal < ${to}
    order by ordinal`;
}

/** Removes the vectors of all other models from a range of ordinals. */
export async function deleteOtherVectors(
  tx: Transaction,
  key: SourceKey,
  model: string,
  from: number,
  to: number,
): Promise<void> {
  await tx`
    delete from knowledge_vectors where app_id = ${key.appId} and source_id = ${key.sourceId} and model <> ${model}
      and ordinal >= ${from} and ordinal < ${to}`;
  await tx`
    delete from knowledge_codes where app_id = ${key.appId} and source_id = ${key.sourceId} and model <> ${model}
      and first_ordinal >= ${from} and first_ordinal < ${to}`;
}
