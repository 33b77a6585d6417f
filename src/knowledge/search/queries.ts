import { EmbeddingError } from '../../content/embed/embedder.ts';
import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import { AppError } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { type Embedders, type OpenEmbedder, originOf } from '../embedding/embedders.ts';
import type { SearchRequest } from './request.ts';
import type { SearchedChunks } from './scope.ts';

/** A query as one embedder understands it, or why it could not be embedded. */
export type EmbeddedQuery = {
  embedder: Pick<SharedEmbedder, 'builtIn' | 'model' | 'dimensions' | 'fusionWeight' | 'similarityFloor'>;
  vector: Float32Array | Error;
};
/** By the name of the embedder; null for the installation's. */
export type Queries = Map<string | null, EmbeddedQuery>;

/** Embeds the query with the embedders of these names. A remote one has so many milliseconds. */
export async function embedQueries(
  { base, open }: Embedders,
  { caller, query }: SearchRequest,
  names: readonly (string | null)[],
  waitMs: number,
): Promise<Queries> {
  const embedOne = async (name: string | null): Promise<[string | null, EmbeddedQuery]> => {
    const embedder = name === null ? base : await openByName(open, caller, name);
    if (embedder instanceof Error) return [name, { embedder: base, vector: embedder }];
    const vectors = await embedQuery(embedder, caller.appId, query, waitMs);
    const vector = vectors instanceof Error ? vectors : (vectors[0] ?? new Float32Array(embedder.dimensions));
    return [name, { embedder, vector }];
  };
  return new Map(await Promise.all(names.map(embedOne)));
}

/** Why searches of some sources do without vectors; undefined if none does. */
export function findUnavailable({ sources }: SearchedChunks, queries: Queries): string | undefined {
  for (const { vector } of queries.values()) if (vector instanceof Error) return vector.message;
  for (const { servingName: name, servingSpace: space } of sources) {
    const query = queries.get(name);
    if (query === undefined) return 'The embedder of a source was changed during the search.';
    if (name !== null && query.embedder.model !== space)
      return `${name} has become another embedder, whose vectors are being computed.`;
  }
  return undefined;
}

/** Returns the query's vector, or the reason why there is none; full-text search continues without it. */
async function embedQuery(
  embedder: SharedEmbedder,
  appId: string,
  query: string,
  waitMs: number,
): Promise<Float32Array[] | Error> {
  if (embedder.local) return embedder.embed(appId, [query], 'query');
  const deadline = AbortSignal.timeout(waitMs);
  // An embedder may ignore the signal.
  const late = new Promise<never>((_resolve, reject) => {
    deadline.addEventListener('abort', () => reject(deadline.reason), { once: true });
  });
  try {
    return await Promise.race([embedder.embed(appId, [query], 'query', deadline), late]);
  } catch (error) {
    if (deadline.aborted) return new EmbeddingError(`The query was not embedded within ${waitMs} ms.`);
    return error instanceof EmbeddingError ? error : new EmbeddingError('The query could not be embedded.');
  }
}

/** The embedder that a source has named, or why it cannot be used. */
async function openByName(
  openEmbedder: OpenEmbedder,
  caller: Caller,
  name: string,
): Promise<SharedEmbedder | EmbeddingError> {
  try {
    return await openEmbedder(caller, name, { origin: originOf(caller) });
  } catch (error) {
    if (error instanceof AppError) return new EmbeddingError(`${name} cannot be used: ${error.message}`);
    throw error;
  }
}
