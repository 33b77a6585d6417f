import type { Db } from '../db/database.ts';
import { operators } from '../http/route/access.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import type { Knowledge } from './domain.ts';
import { embeddingQuery, embeddingSchema } from './embedding/schema.ts';
import { presentEmbedding } from './present.ts';

/** The embedder of a source. */
export function registerEmbeddingRoutes(api: Api, { db, knowledge }: { db: Db; knowledge: Knowledge }): void {
  api.app(operators, {
    method: 'GET',
    path: '/api/v1/knowledge_sources/:source/embedding',
    operationId: 'getKnowledgeEmbedding',
    tag: 'Knowledge',
    summary: 'Get the embedder of a source and its progress',
    description:
      'With `embedder`, also estimates what another embedder would use; 422 if the name stands for no model for embeddings.',
    params: Type.Object({ source: Type.String() }),
    query: embeddingQuery,
    responses: { 200: ref(embeddingSchema) },
    handler: async ({ caller, params, query }) => {
      const { appId, id: sourceId } = await knowledge.sources.get(db, caller, params.source);
      return presentEmbedding(await knowledge.embedding.status(caller, { appId, sourceId }, query.embedder));
    },
  });
}
