import { Type } from '../../lib/type.ts';
import { modelName } from '../../llm/operator-models.ts';

const name = {
  ...modelName,
  description:
    'A model for embeddings, or an alias, that computes the vectors of the source. Without one, the installation’s embedder does. Only secret keys and developers set it.',
};

export const embedderInput = Type.Optional(name);

/** `embedder` of a change; null returns to the installation's. */
export const embedderChange = Type.Optional(
  Type.Union([name, Type.Null()], {
    description:
      'A model for embeddings, or an alias, that computes the vectors of the source; null for the installation’s embedder. The vectors are computed in the background, and searches use the previous ones until all documents have theirs. Only secret keys and developers set it.',
  }),
);

/** `rerank_model` of a search. */
export const rerankModel = Type.Optional({
  ...modelName,
  description: 'A model for reranking, or an alias, that orders the results instead of the server’s reranker.',
});

const nameOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

export const embeddingSchema = Type.Object(
  {
    embedder: nameOrNull('The embedder that the source names; null for the installation’s.'),
    serving: nameOrNull('The embedder whose vectors searches use; null for the installation’s.'),
    status: Type.Enum(['ready', 'running', 'failed'], {
      description:
        '`running`: documents wait for their vectors. `failed`: the last try failed, and another one follows; searches use the vectors that there are.',
    }),
    documents: Type.Integer({ description: 'How many documents the source has.' }),
    embedded: Type.Integer({ description: 'How many of them have vectors of `embedder`.' }),
    tokens: Type.Integer({ description: 'Tokens that vectors have used since `embedder` was named; 0 without one.' }),
    cost: Type.Integer({ description: 'What they cost, in millionths of a currency unit.' }),
    error: Type.Optional(Type.String({ description: 'Why the last try failed.' })),
    retry_at: Type.Optional(Type.String({ description: 'When the next try is due.' })),
    started_at: Type.Optional(Type.String({ description: 'When `embedder` was named.' })),
    completed_at: Type.Optional(Type.String({ description: 'When searches began to use its vectors.' })),
    estimate: Type.Optional(
      Type.Object(
        {
          embedder: Type.String({ description: 'The embedder of the estimate.' }),
          documents: Type.Integer({ description: 'How many documents would be embedded.' }),
          tokens: Type.Integer({ description: 'Tokens that they are likely to need, at four bytes a token.' }),
          cost: Type.Union([Type.Integer(), Type.Null()], {
            description:
              'What they are likely to cost, in millionths of a currency unit; null for a model without prices.',
          }),
        },
        { description: 'What it would take to name another embedder. Only with `embedder` in the query.' },
      ),
    ),
  },
  { $id: 'KnowledgeEmbedding', description: 'The embedder of a source, and how far its vectors are.' },
);

export const embeddingQuery = Type.Object({
  embedder: Type.Optional({
    ...modelName,
    description: 'Estimates what the vectors of this model or alias would use. Changes nothing.',
  }),
});
