import type { BlobStore } from '../../blob/blob-store.ts';
import type { Embedder } from '../../content/embed/embedder.ts';
import type { ParserPool } from '../../content/parse/pool/pool.ts';
import type { StemLanguage } from '../../content/terms.ts';
import type { Database, Db, Transaction } from '../../db/database.ts';
import type { Logger } from '../../log.ts';

export type AddKnowledgeJob = (
  db: Db,
  task: string,
  payload: object,
  options?: { key?: string; keepRunAt?: boolean; runAt?: Date },
) => Promise<void>;

/** In the transaction that made the ingestion active. */
export type Launch = (tx: Transaction, appId: string, sourceId: string, ingestionId: string) => Promise<void>;

export type KnowledgeWorkDeps = {
  db: Database;
  blobs: BlobStore;
  parser: ParserPool;
  embedder: Embedder;
  /** Language of sources that do not name one. */
  language: StemLanguage;
  addJob: AddKnowledgeJob;
  /** Sets an ingestion to work that has become the active one. */
  launch: Launch;
  log: Logger;
};
