import type { TObject } from 'typebox';
import type { CrawlSettings } from '../../crawls/types.ts';
import type { IngestionRun } from '../ingestion/run.ts';
import type { IngestionError } from '../ingestion/store.ts';
import type { SourceRow } from '../sources/store.ts';
import type { Payload } from './payload.ts';

/** One kind of source that clients may create. */
export type SourceKind = {
  type: string;
  label: string;
  description: string;
  /** The known members of the payload. Required ones are required by a pull, not to create a source. */
  payload: TObject;
  /** Other names of members. */
  aliases?: Readonly<Record<string, string>>;
  /** Whether bytes can be pushed. */
  pushable: boolean;
  /** The members of credentials that a pull uses, and the scheme, host and port in a payload that they are for. */
  credentials?: { members: readonly string[]; origin(payload: Payload | null): string | undefined };
  /** Absent if there is nothing to pull from. */
  pull?: CrawlPull | JobPull;
};

/** A crawl pulls the pages. */
type CrawlPull = { by: 'crawl'; settings(payload: Payload | null): CrawlSettings };

/** The ingestion's own job pulls the document. Returns the failure, or undefined. Safe to repeat. */
type JobPull = { by: 'job'; run(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> };
