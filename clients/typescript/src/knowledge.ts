import type { CallOptions, Connection } from './connection.ts';
import { knowledge as operations } from './generated/knowledge.ts';
import type { IngestIntoKnowledgeSourceRequest, KnowledgeIngestion } from './generated/schema.ts';
import type { EventStream } from './streams.ts';

/** Sources, ingestion, documents and search. */
export const knowledge = (c: Connection) => {
  const own = operations(c);
  const streamIngestion = (ingestion: string, options?: CallOptions) =>
    own.streamIngestion(ingestion, options) as EventStream<KnowledgeIngestion>;
  /** Waits until the ingestion has ended: succeeded or failed. */
  const waitFor = async (ingestion: string, options?: CallOptions): Promise<KnowledgeIngestion> => {
    for await (const { data } of streamIngestion(ingestion, options)) if (hasEnded(data)) return data;
    // It was deleted with its source.
    return own.getIngestion(ingestion, options);
  };
  return {
    ...own,
    streamIngestion,
    waitFor,
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
