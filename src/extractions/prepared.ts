import type { BlobStore } from '../blob/blob-store.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { ParserPool } from '../content/parse/pool/pool.ts';
import type { Database, Db } from '../db/database.ts';
import type { FileService } from '../files/service.ts';
import type { Llm } from '../llm/service.ts';
import type { Schemas } from './structure/schemas.ts';

export type ExtractionDeps = {
  db: Database;
  blobs: BlobStore;
  parser: ParserPool;
  files: FileService;
  fetcher: Fetcher;
  llm: Pick<Llm, 'requireUsable' | 'contextTokens'>;
  schemas: Schemas;
  /** The size of the language model's context in tokens. */
  contextTokens: number;
};

/** An extraction that is ready to be written. */
export type PreparedExtraction = {
  /**
   * Writes the extraction in this transaction (for a document, with its output) and returns its uuid. May be retried
   * in another transaction.
   */
  commit(tx: Db): Promise<string>;
  /** Discards what was stored for an extraction that will not be written. */
  discard(): Promise<void>;
};

/** The counts of an extraction whose data has yet to be extracted. */
export const noDataYet = { dataPending: 0, dataDone: 0, dataFailed: 0, dataPieces: 0, dataPiecesDone: 0 };
