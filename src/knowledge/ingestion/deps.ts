import type { BlobStore } from '../../blob/blob-store.ts';
import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import type { Fetcher } from '../../content/fetch/guarded-fetch.ts';
import type { ParserPool } from '../../content/parse/pool/pool.ts';
import type { StemLanguage } from '../../content/terms.ts';
import type { Database, Db, Transaction } from '../../db/database.ts';
import { addJob } from '../../jobs/queue.ts';
import { taskNames } from '../../jobs/task-names.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import type { Embedders } from '../embedding/embedders.ts';
import type { SourceKey } from '../index/store.ts';
import type { SourceRow } from '../sources/store.ts';

/**
 * Called in the transaction that makes the ingestion active. Returns whether the caller should run it next itself: only if
 * it passed `mayContinue`, and the ingestion is a push.
 */
type Launch = (
  tx: Transaction,
  appId: string,
  sourceId: string,
  ingestionId: string,
  mayContinue?: boolean,
) => Promise<boolean>;

export type KnowledgeWorkDeps = {
  db: Database;
  blobs: BlobStore;
  parser: ParserPool;
  embedder: SharedEmbedder;
  embedders: Embedders;
  /** The embedder whose vectors searches of the source use. */
  embedderOf(source: SourceRow): Promise<SharedEmbedder>;
  /** Language of sources that do not name one. */
  language: StemLanguage;
  /** Starts the work of an ingestion that has become active. */
  launch: Launch;
  log: Logger;
  clock: Clock;
  secrets: Secrets;
  fetcher: Fetcher;
  /** For what pulls keep while they run. */
  scratchDirectory: string;
  /** Where add-ons are. */
  dataDir: string;
  /** Memory of a process that learns from a source, in MiB; 0 learns nothing. */
  learnMemoryMb: number;
};

/** What a job embeds: the documents of an app, or only those whose sources of the sandbox name this embedder. */
export type EmbeddingOrder = { appId: string; sandboxId?: string; embedder?: string };

/** Queues one job that embeds documents that lack vectors, however often it is called. */
export function queueEmbedding(db: Db, order: EmbeddingOrder, inMs?: number): Promise<void> {
  const { appId, sandboxId, embedder } = order;
  const key = [taskNames.embedDocuments, appId, sandboxId, embedder].filter((part) => part !== undefined).join('/');
  return addJob(db, taskNames.embedDocuments, order, { key, inMs });
}

/** Queues one job that learns from the sources of an app, however often it is called. */
export function queueLearning(db: Db, appId: string): Promise<void> {
  return addJob(db, taskNames.learnSources, { appId }, { key: `${taskNames.learnSources}/${appId}` });
}

/** Queues the work that a flushed segment makes due: merging, and perhaps learning. */
export async function queueIndexWork(tx: Transaction, key: SourceKey): Promise<void> {
  await addJob(tx, taskNames.mergeIndex, key, { key: `merge_index/${key.sourceId}` });
  await queueLearning(tx, key.appId);
}
