import type { Db } from '../db/database.ts';
import type { Deletion } from './deletions.ts';
import type { ErasureRow } from './store.ts';

/** What belongs to a source, children before parents. Its index row is already gone, so nothing is added. */
export function contentsOfSource({ appId }: Pick<ErasureRow, 'appId'>, sourceId: string): Deletion[] {
  const own = (db: Db) => db`t.source_id = ${sourceId}`;
  const ofIngestions = (db: Db) =>
    db`select i.id from knowledge_ingestions i where i.app_id = ${appId} and i.source_id = ${sourceId}`;
  const ofCrawls = (db: Db) =>
    db`select c.id from crawls c where c.app_id = ${appId}
      and (c.collection_id = ${sourceId} or c.id in (${ofIngestions(db)}))`;
  return [
    // Answers of others that a model has written from these documents.
    {
      table: 'openai_responses',
      count: 'answers',
      where: (db) => db`exists (
        select from unnest(t.document_ids) cited (id)
        where exists (select from knowledge_documents d
            where d.app_id = ${appId} and d.id = cited.id and d.source_id = ${sourceId})
          or exists (select from knowledge_versions v
            where v.app_id = ${appId} and v.document_id = cited.id and v.source_id = ${sourceId}))`,
    },
    { table: 'knowledge_chunks', count: 'chunks', where: own },
    { table: 'knowledge_bundles', count: 'postings', where: own },
    {
      table: 'knowledge_postings',
      count: 'postings',
      where: (db) => db`t.segment in (
        select g.segment from knowledge_segments g where g.app_id = ${appId} and g.source_id = ${sourceId})`,
    },
    { table: 'knowledge_segments', where: own },
    { table: 'knowledge_dead_ranges', where: own },
    { table: 'knowledge_vectors', count: 'vectors', where: own },
    { table: 'knowledge_codes', where: own },
    { table: 'knowledge_model_terms', where: own },
    { table: 'knowledge_model_codes', where: own },
    { table: 'knowledge_models', count: 'learned_models', where: own },
    {
      table: 'knowledge_texts',
      count: 'texts',
      where: (db) => db`t.document_id in (
        select d.id from knowledge_documents d where d.app_id = ${appId} and d.source_id = ${sourceId})`,
    },
    { table: 'knowledge_documents', count: 'documents', where: own },
    // Their texts go with them.
    { table: 'knowledge_versions', count: 'versions', where: own },
    { table: 'knowledge_sync_items', count: 'connector_items', where: own },
    { table: 'knowledge_syncs', count: 'syncs', where: own },
    { table: 'knowledge_sync_states', where: own },
    { table: 'knowledge_tombstones', where: own },
    { table: 'crawl_pages', where: (db) => db`t.crawl_id in (${ofCrawls(db)})` },
    { table: 'crawls', where: (db) => db`t.id in (${ofCrawls(db)})` },
    { table: 'crawled_pages', where: (db) => db`t.collection_id = ${sourceId}` },
    { table: 'inbound_messages', where: own },
    { table: 'knowledge_ingestion_items', where: (db) => db`t.ingestion_id in (${ofIngestions(db)})` },
    { table: 'knowledge_ingestions', count: 'ingestions', where: own },
    {
      table: 'events',
      count: 'events',
      where: (db) => db`(t.subject_kind = 'source' and t.subject_id = ${sourceId})`,
    },
    { table: 'knowledge_sources', count: 'sources', where: (db) => db`t.id = ${sourceId}` },
  ];
}
