import type { StemLanguage } from '../../content/terms.ts';
import { type CopiedRow, type Db, nobody, type Statement, type Transaction } from '../../db/database.ts';
import { fewPrincipalsOf, groupsOf } from '../../tenancy/document-readers.ts';
import type { BorrowedMemory } from '../computing/shared.ts';

export type Fragment = Statement;

/** A source in the search's scope with the current state of its index. */
export type ScopeSource = {
  sourceId: string;
  languages: StemLanguage[];
  firstOrdinal: number;
  nextOrdinal: number;
  chunkCount: number;
  wordCount: number;
  vectorVersion: number;
  /** Live chunks of restricted documents, and the version of the restrictions. */
  restrictedChunks: number;
  aclVersion: number;
  /** The version of the learned model; 0 if there is none. */
  modelVersion: number;
  modelDimensions: number;
  codeVersion: number;
  /** The embedder that the source has named and the space of its vectors; null for the installation's. */
  servingName: string | null;
  servingSpace: string | null;
  servingVersion: number;
  segments: number[];
  bundles: number[];
  deadFirst: number[];
  deadCount: number[];
};

/** `sources` is a condition on `s`, a row of knowledge_sources: it includes visibility. */
export async function listScope(db: Db, appId: string, sources: Fragment): Promise<ScopeSource[]> {
  return db<ScopeSource[]>`
    select i.source_id, i.languages, i.first_ordinal, i.next_ordinal, i.chunk_count, i.word_count, i.vector_version,
      i.restricted_chunks, i.acl_version,
      case when m.dimensions > 0 then m.version else 0 end as model_version, coalesce(m.dimensions, 0) as model_dimensions,
      coalesce(m.code_version, 0) as code_version, e.serving_name, e.serving_space,
      coalesce(e.serving_version, 0) as serving_version,
      coalesce((select array_agg(g.segment::int8::float8) from knowledge_segments g
        where g.app_id = ${appId} and g.source_id = i.source_id), '{}') as segments,
      coalesce((select array_agg(b.first_ordinal) from knowledge_bundles b
        where b.app_id = ${appId} and b.source_id = i.source_id), '{}') as bundles,
      coalesce((select array_agg(d.first_ordinal order by d.first_ordinal) from knowledge_dead_ranges d
        where d.app_id = ${appId} and d.source_id = i.source_id), '{}') as dead_first,
      coalesce((select array_agg(d.chunk_count order by d.first_ordinal) from knowledge_dead_ranges d
        where d.app_id = ${appId} and d.source_id = i.source_id), '{}') as dead_count
    from knowledge_indexes i join knowledge_sources s on s.app_id = i.app_id and s.id = i.source_id
    left join knowledge_models m on m.app_id = i.app_id and m.source_id = i.source_id
    left join knowledge_embedders e on e.app_id = i.app_id and e.source_id = i.source_id
    where i.app_id = ${appId} and i.chunk_count > 0 and ${sources}
    order by i.source_id`;
}

/** What lists of grants may name the caller by: packed ids of principals, by kind. */
export function readPrincipals(tx: Transaction, caller: Parameters<typeof fewPrincipalsOf>[1]) {
  const few = tx`
    select c.type || '/' || c.role || '/' as kind, string_agg(uuid_send(c.id), ''::bytea) as ids
    from (${fewPrincipalsOf(tx, caller)}) c group by c.type, c.role`;
  if (caller.kind !== 'user') return tx<Packed[]>`${few}`;
  return tx<Packed[]>`
    ${few} union all
    select 'group//', coalesce(string_agg(uuid_send(g.id), ''::bytea), '') from (${groupsOf(tx, caller)}) g`;
}

/** Ids of 16 bytes each. */
export type Packed = { kind: string; ids: Buffer };

/**
 * The lists of grants of the documents of a source whose restriction or place has changed after `version`: by kind of
 * principal, packed pairs of the id of a list and of a principal in it.
 */
export function readGrants(tx: Transaction, appId: string, sourceId: string, version: number) {
  return tx<Packed[]>`
    select p.principal_type || '/' || p.principal_role || '/' as kind,
      string_agg(uuid_send(p.acl_id) || uuid_send(p.principal_id), ''::bytea) as ids
    from knowledge_acl_principals p
    where p.app_id = ${appId} and p.acl_id in (
      select d.acl_id from knowledge_documents d
      where d.app_id = ${appId} and d.source_id = ${sourceId} and d.acl_version > ${version} and d.chunk_count > 0)
    group by p.principal_type, p.principal_role`;
}

/**
 * The documents of a source whose restriction or place has changed after `version`, packed by language: first ordinal,
 * chunks and words as 32-bit numbers, big-endian, and the id of the list of grants, which is nil if there is none.
 */
export function readRestrictedPlaces(tx: Transaction, appId: string, sourceId: string, version: number) {
  return tx<{ language: StemLanguage; places: Buffer }[]>`
    select language, string_agg(int4send(first_ordinal) || int4send(chunk_count) || int4send(word_count)
      || uuid_send(coalesce(acl_id, ${nobody}::uuid)), ''::bytea) as places
    from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and acl_version > ${version} and chunk_count > 0
    group by language order by language`;
}

/** Ranges of ordinals, packed: pairs of 32-bit numbers (first, count), big-endian, per source. */
export type AllowedRanges = { sourceId: string; ranges: Buffer };

/** `documents` is a condition on `d`, a row of knowledge_documents. */
export async function listAllowed(db: Db, appId: string, sourceIds: string[], documents: Fragment) {
  return db<AllowedRanges[]>`
    select d.source_id, string_agg(int4send(d.first_ordinal) || int4send(d.chunk_count), ''::bytea) as ranges
    from knowledge_documents d
    where d.app_id = ${appId} and d.source_id = any(${sourceIds}::uuid[]) and d.chunk_count > 0 and ${documents}
    group by d.source_id`;
}

type PostingRow = { segment: number; term: string; postings: Buffer; positions?: Buffer };

/** Postings for each pair of segment and term, in order; with positions for phrases. */
export async function listPostings(
  db: Db,
  appId: string,
  wanted: { segment: number; term: string }[],
  withPositions = false,
): Promise<PostingRow[]> {
  if (wanted.length === 0) return [];
  return db<PostingRow[]>`
    select p.segment, p.term, p.postings ${withPositions ? db`, p.positions` : db``}
    from unnest(${wanted.map((one) => one.segment)}::bigint[], ${wanted.map((one) => one.term)}::text[])
      w (segment, term)
    join knowledge_postings p on p.app_id = ${appId} and p.segment = w.segment and p.term = w.term`;
}

/**
 * Postings without positions for each pair of segment and term, unordered, as a copy of bytes in memory that other
 * threads can read. It is planned each time, and so only faster for many megabytes.
 */
export async function copyPostings(
  tx: Transaction,
  appId: string,
  wanted: { segment: number; term: string }[],
  memory: BorrowedMemory,
): Promise<{ segment: number; term: string; postings: Uint8Array }[]> {
  if (wanted.length === 0) return [];
  const found: { segment: number; term: string; postings: Uint8Array }[] = [];
  const rows = tx`
    select p.segment, p.term, p.postings
    from unnest(${wanted.map((one) => one.segment)}::bigint[], ${wanted.map((one) => one.term)}::text[])
      w (segment, term)
    join knowledge_postings p on p.app_id = ${appId} and p.segment = w.segment and p.term = w.term`;
  await tx.copyOut(rows, ([segment, term, postings]) => {
    if (segment === undefined || term === undefined || postings === undefined) throw new Error('A row lacks a column.');
    found.push({
      segment: Number(segment.readBigInt64BE(0)),
      term: term.toString(),
      postings: memory.copy(postings),
    });
  });
  return found;
}

export async function listBundles(
  db: Db,
  appId: string,
  wanted: { sourceId: string; firstOrdinal: number }[],
): Promise<{ sourceId: string; firstOrdinal: number; content: Buffer }[]> {
  if (wanted.length === 0) return [];
  return db<{ sourceId: string; firstOrdinal: number; content: Buffer }[]>`
    select b.source_id, b.first_ordinal, b.content
    from unnest(${wanted.map((one) => one.sourceId)}::uuid[], ${wanted.map((one) => one.firstOrdinal)}::int[])
      w (source_id, first_ordinal)
    join knowledge_bundles b on b.app_id = ${appId} and b.source_id = w.source_id
      and b.first_ordinal = w.first_ordinal`;
}

/** Index terms with this prefix after `after`, in the order of their code points, at most `termsMax`. */
export async function listTermsByPrefix(
  db: Db,
  appId: string,
  segments: number[],
  prefix: string,
  after: string | undefined,
  termsMax: number,
): Promise<string[]> {
  if (segments.length === 0) return [];
  const rows = await db<{ term: string }[]>`
    select distinct p.term
    from unnest(${segments}::bigint[]) w (segment)
    cross join lateral (
      select term from knowledge_postings p
      where p.app_id = ${appId} and p.segment = w.segment and p.term >= ${prefix} collate "C"
        and p.term > ${after ?? ''} collate "C" and p.term < ${`${prefix}\u{10FFFF}`} collate "C"
      order by p.term limit ${termsMax}) p
    order by p.term limit ${termsMax}`;
  return rows.map((row) => row.term);
}

type CodeRun = { firstOrdinal: number; chunkCount: number; content: Buffer };

/** Passes the sign codes stored after `version` to `take`, oldest first. The content is valid until the next ones. */
export function readCodes(
  tx: Transaction,
  appId: string,
  sourceId: string,
  { model, version }: { model: string; version: number },
  take: (run: CodeRun) => void,
): Promise<void> {
  const codes = tx`
    select first_ordinal, chunk_count, content from knowledge_codes
    where app_id = ${appId} and source_id = ${sourceId} and model = ${model} and version > ${version}
    order by version, first_ordinal`;
  return tx.copyOut(codes, (row) => take(codeRunOf(row)));
}

function codeRunOf([first, count, content]: CopiedRow): CodeRun {
  if (first === undefined || count === undefined || content === undefined) throw new Error('A row lacks a column.');
  return { firstOrdinal: first.readInt32BE(0), chunkCount: count.readInt32BE(0), content };
}

type WantedVectors = {
  ordinals: readonly { sourceId: string; ordinal: number }[];
  /** How many vectors come in a row. A row for each takes as long to receive as the vectors themselves. */
  perRow: number;
  /** As a copy of bytes, which is planned each time, and so only faster for many. */
  asCopy: boolean;
};

/**
 * Passes the 16-bit vectors at these ordinals to `take`: some of them, one behind the other, with their places in the
 * list. The bytes are valid until the next ones.
 */
export async function readVectorsAt(
  tx: Transaction,
  appId: string,
  model: string,
  { ordinals, perRow, asCopy }: WantedVectors,
  take: (places: number[], vectors: Buffer) => void,
): Promise<void> {
  const takeRow = (places: Buffer, vectors: Buffer) =>
    take(
      Array.from({ length: places.length / 4 }, (_place, i) => places.readInt32BE(i * 4)),
      vectors,
    );
  const rows = tx<{ places: Buffer; vectors: Buffer }[]>`
    select string_agg(int4send((w.place - 1)::int), ''::bytea) as places, string_agg(v.content, ''::bytea) as vectors
    from unnest(${ordinals.map(({ sourceId }) => sourceId)}::uuid[], ${ordinals.map(({ ordinal }) => ordinal)}::int[])
      with ordinality w (source_id, ordinal, place)
    join knowledge_vectors v on v.app_id = ${appId} and v.source_id = w.source_id and v.ordinal = w.ordinal
      and v.model = ${model}
    group by (w.place - 1) / ${perRow}`;
  if (!asCopy) {
    for (const { places, vectors } of await rows) takeRow(places, vectors);
    return;
  }
  await tx.copyOut(rows, ([places, vectors]) => {
    if (places === undefined || vectors === undefined) throw new Error('A row lacks a column.');
    takeRow(places, vectors);
  });
}

/** Passes the codes of a model's version stored after `codeVersion` to `take`. */
export function readModelCodes(
  tx: Transaction,
  appId: string,
  { sourceId, modelVersion }: { sourceId: string; modelVersion: number },
  codeVersion: number,
  take: (run: CodeRun) => void,
): Promise<void> {
  const codes = tx`
    select first_ordinal, chunk_count, content from knowledge_model_codes
    where app_id = ${appId} and source_id = ${sourceId} and version = ${modelVersion} and code_version > ${codeVersion}`;
  return tx.copyOut(codes, (row) => take(codeRunOf(row)));
}

/** A word in a version of a source's model. */
export type ModelTerm = { sourceId: string; version: number; term: string };

/** The vectors of words, unordered. */
export async function listModelVectors(db: Db, appId: string, wanted: readonly ModelTerm[]) {
  if (wanted.length === 0) return [];
  return db<{ sourceId: string; term: string; vector: Buffer }[]>`
    select t.source_id, t.term, t.vector from ${modelTerms(db, appId, wanted)}`;
}

/** How often a chunk has each word on average, unordered. */
export async function listModelFrequencies(db: Db, appId: string, wanted: readonly ModelTerm[]) {
  if (wanted.length === 0) return [];
  return db<{ sourceId: string; term: string; frequency: number }[]>`
    select t.source_id, t.term, t.frequency from ${modelTerms(db, appId, wanted)}`;
}

function modelTerms(db: Db, appId: string, wanted: readonly ModelTerm[]): Fragment {
  return db`
    unnest(${wanted.map((one) => one.sourceId)}::uuid[], ${wanted.map((one) => one.version)}::int[],
      ${wanted.map((one) => one.term)}::text[]) w (source_id, version, term)
    join knowledge_model_terms t on t.app_id = ${appId} and t.source_id = w.source_id and t.version = w.version
      and t.term = w.term`;
}

type Passage = {
  sourceId: string;
  ordinal: number;
  language: StemLanguage;
  title: string | null;
  headingPath: string[];
  content: Buffer;
};

/** The texts of the chunks at these ordinals with their title and headings, unordered. */
export async function listPassages(db: Db, appId: string, places: { sourceId: string; ordinal: number }[]) {
  if (places.length === 0) return [];
  return db<Passage[]>`
    select c.source_id, c.ordinal, d.language, d.title, c.heading_path,
      substring(t.content from c.start_byte + 1 for c.end_byte - c.start_byte) as content
    from unnest(${places.map((place) => place.sourceId)}::uuid[], ${places.map((place) => place.ordinal)}::int[])
      w (source_id, ordinal)
    join knowledge_chunks c on c.app_id = ${appId} and c.source_id = w.source_id and c.ordinal = w.ordinal
    join knowledge_documents d on d.app_id = c.app_id and d.id = c.document_id
    join knowledge_texts t on t.app_id = c.app_id and t.document_id = c.document_id`;
}
