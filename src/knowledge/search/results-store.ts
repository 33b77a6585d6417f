import type { StemLanguage } from '../../content/terms.ts';
import type { Db } from '../../db/database.ts';

type ChunkPlace = { sourceId: string; ordinal: number };

export type HitRow = {
  sourceId: string;
  ordinal: number;
  id: string;
  documentId: string;
  startByte: number;
  endByte: number;
  startLine: number;
  endLine: number;
  startPage: number | null;
  endPage: number | null;
  headingPath: string[];
  fragment: string | null;
  content: Buffer;
  sourceType: string;
  title: string | null;
  contentType: string | null;
  contentHash: Buffer;
  language: StemLanguage;
  metadata: Record<string, unknown>;
  sourceUrl: string | null;
  /** The number of the version that was read; null if its source keeps none. */
  version: number | null;
  createdAt: Date;
};

/** The chunks at these ordinals with their text and their document, unordered. */
export async function listHits(db: Db, appId: string, places: ChunkPlace[]): Promise<HitRow[]> {
  if (places.length === 0) return [];
  return db<HitRow[]>`
    select c.source_id, c.ordinal, c.id, c.document_id, c.start_byte, c.end_byte, c.start_line, c.end_line,
      c.start_page, c.end_page, c.heading_path, c.fragment,
      substring(t.content from c.start_byte + 1 for c.end_byte - c.start_byte) as content,
      s.type as source_type, d.title, d.content_type, d.content_hash,
      d.language, d.metadata, d.source_url, d.indexed_at as created_at,
      case when s.version_retention_days is not null then d.version end as version
    from unnest(${places.map((place) => place.sourceId)}::uuid[], ${places.map((place) => place.ordinal)}::int[])
      w (source_id, ordinal)
    join knowledge_chunks c on c.app_id = ${appId} and c.source_id = w.source_id and c.ordinal = w.ordinal
    join knowledge_documents d on d.app_id = c.app_id and d.id = c.document_id
    join knowledge_texts t on t.app_id = c.app_id and t.document_id = c.document_id
    join knowledge_sources s on s.app_id = c.app_id and s.id = c.source_id`;
}

export type ContextRow = Pick<
  HitRow,
  'sourceId' | 'ordinal' | 'startByte' | 'endByte' | 'startLine' | 'endLine' | 'startPage' | 'endPage' | 'content'
>;

/** The text of these chunks with `chunks` neighbours of the same document on either side, unordered. */
export async function listContexts(db: Db, appId: string, places: ChunkPlace[], chunks: number): Promise<ContextRow[]> {
  if (places.length === 0) return [];
  return db<ContextRow[]>`
    select w.source_id, w.ordinal, n.*,
      substring(t.content from n.start_byte + 1 for n.end_byte - n.start_byte) as content
    from unnest(${places.map((place) => place.sourceId)}::uuid[], ${places.map((place) => place.ordinal)}::int[])
      w (source_id, ordinal)
    join knowledge_chunks c on c.app_id = ${appId} and c.source_id = w.source_id and c.ordinal = w.ordinal
    join knowledge_documents d on d.app_id = c.app_id and d.id = c.document_id
    join knowledge_texts t on t.app_id = c.app_id and t.document_id = c.document_id
    cross join lateral (
      select min(b.start_byte) as start_byte, max(b.end_byte) as end_byte, min(b.start_line) as start_line,
        max(b.end_line) as end_line, min(b.start_page) as start_page, max(b.end_page) as end_page
      from knowledge_chunks b
      where b.app_id = ${appId} and b.source_id = c.source_id
        and b.ordinal between greatest(c.ordinal - ${chunks}, d.first_ordinal)
          and least(c.ordinal + ${chunks}, d.first_ordinal + d.chunk_count - 1)) n`;
}

/** The documents of the chunks at these ordinals, unordered. */
export async function listDocumentsAt(db: Db, appId: string, places: ChunkPlace[]) {
  if (places.length === 0) return [];
  return db<(ChunkPlace & { documentId: string })[]>`
    select c.source_id, c.ordinal, c.document_id
    from unnest(${places.map((place) => place.sourceId)}::uuid[], ${places.map((place) => place.ordinal)}::int[])
      w (source_id, ordinal)
    join knowledge_chunks c on c.app_id = ${appId} and c.source_id = w.source_id and c.ordinal = w.ordinal`;
}

export type FacetValue = { key: string; value: string | number | boolean; count: number };

/**
 * Counts the documents by the values of these metadata members: the `valuesMax` most frequent ones of each. Items of a
 * list count one by one; nulls, maps and values over `bytesMax` do not count.
 */
export async function countFacets(
  db: Db,
  appId: string,
  documentIds: string[],
  keys: string[],
  { valuesMax, bytesMax }: { valuesMax: number; bytesMax: number },
): Promise<FacetValue[]> {
  if (documentIds.length === 0 || keys.length === 0) return [];
  return db<FacetValue[]>`
    select key, value, count::int from (
      select key, value, count, row_number() over (partition by key order by count desc, value) as place
      from (
        select k.key, v.value, count(distinct d.id) as count
        from knowledge_documents d
        cross join unnest(${keys}::text[]) k (key)
        cross join lateral jsonb_array_elements(case jsonb_typeof(d.metadata -> k.key)
          when 'array' then d.metadata -> k.key else jsonb_build_array(d.metadata -> k.key) end) v (value)
        where d.app_id = ${appId} and d.id = any(${documentIds}::uuid[])
          and jsonb_typeof(v.value) in ('string', 'number', 'boolean') and octet_length(v.value::text) <= ${bytesMax}
        group by k.key, v.value) counted) ranked
    where place <= ${valuesMax}
    order by key, count desc, value`;
}
