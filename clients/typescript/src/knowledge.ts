import type { CallOptions, Connection } from './connection.ts';
import { type Connector, connector } from './connector.ts';
import { knowledge as operations } from './generated/knowledge.ts';
import type { IngestIntoKnowledgeSourceRequest, KnowledgeIngestion } from './generated/schema.ts';
import { waitByStream } from './wait.ts';

/** Sources, ingestion, documents and search. */
export const knowledge = (c: Connection) => {
  const own = operations(c);
  /** Waits until the ingestion has ended: succeeded or failed. */
  const waitFor = (ingestion: string, options?: CallOptions): Promise<KnowledgeIngestion> =>
    waitByStream(
      own.streamIngestion(ingestion, options),
      () => own.getIngestion(ingestion, options),
      hasEnded,
      options?.signal,
    );
  return {
    ...own,
    waitFor,
    /** A program that fills this source from another system: `connector(source, mailbox).run('full')`. */
    connector: (source: string, subject: Connector) => connector(c, source, subject),
    /** Ingests content and waits until it can be found. */
    async add(
      source: string,
      body: IngestIntoKnowledgeSourceRequest,
      options?: CallOptions,
    ): Promise<KnowledgeIngestion> {
      const ingestion = await own.ingest(source, body, options);
      return hasEnded(ingestion) ? ingestion : waitFor(ingestion.id, options);
    },
  };
};

function hasEnded({ status }: KnowledgeIngestion): boolean {
  return status === 'succeeded' || status === 'failed';
}
