import type { CallOptions, Connection } from './connection.ts';
import { extractions as operations } from './generated/extractions.ts';
import type { CreateExtractionRequest, Extraction, ExtractionOutput } from './generated/schema.ts';
import { type DataOf, type DataSchema, jsonSchemaOf } from './schemas.ts';
import { waitByStream } from './wait.ts';

type WithData<S> = Omit<Extraction, 'outputs'> & {
  outputs?: (Omit<ExtractionOutput, 'data'> & { data?: DataOf<S> })[];
};

/** Text from documents, pages and sites. */
export const extractions = (c: Connection) => {
  const own = operations(c);
  /** Waits until the extraction has ended, done or failed. */
  const waitFor = (extraction: string, options?: CallOptions): Promise<Extraction> =>
    waitByStream(own.stream(extraction, options), () => own.get(extraction, options), hasEnded, options?.signal);
  return {
    ...own,
    waitFor,
    /**
     * Creates an extraction and waits for its end. With a `schema`, a JSON Schema or a library's schema that knows its
     * own, the outputs have typed `data`.
     */
    async run<const S extends DataSchema>(
      body: Omit<CreateExtractionRequest, 'schema'> & { schema?: S },
      options?: CallOptions,
    ): Promise<WithData<S>> {
      const { schema, ...rest } = body;
      const given = schema === undefined ? rest : { ...rest, schema: jsonSchemaOf(schema, 'output') };
      const created = await own.create(given, options);
      const ended = hasEnded(created) ? created : await waitFor(created.id, options);
      return ended as WithData<S>;
    },
  };
};

function hasEnded({ state }: Extraction): boolean {
  return state !== 'running';
}
