import type { TSchema } from 'typebox';
import { ref, strict } from '../http/route/route.ts';
import { jsonBytes } from '../http/route/validation.ts';
import { limits } from '../lib/limits.ts';
import { mapOf } from '../lib/map-schema.ts';
import { Type } from '../lib/type.ts';

/* The shapes of OpenAI's API, limited to what Quarry supports. */

const text = Type.String();
const count = Type.Integer({ minimum: 0 });
const seconds = Type.Integer({ description: 'Seconds since 1970.' });
const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const purposes = ['assistants', 'user_data', 'vision'] as const;

export const fileObjectSchema = Type.Object(
  {
    id: Type.String({ description: 'file-…: the id of the file with a different prefix.' }),
    object: Type.Literal('file'),
    bytes: count,
    created_at: seconds,
    filename: text,
    purpose: text,
    status: Type.Literal('processed'),
  },
  { $id: 'OpenAIFile', description: 'A file, as OpenAI describes it.' },
);

const deletedOf = (object: string) =>
  Type.Object({ id: text, object: Type.Literal(object), deleted: Type.Literal(true) });
export const fileDeletedSchema = deletedOf('file');
export const storeDeletedSchema = deletedOf('vector_store.deleted');
export const storeFileDeletedSchema = deletedOf('vector_store.file.deleted');

const limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 10_000, description: 'Default 20; more than 100 counts as 100.' }),
);
const order = Type.Optional(Type.Enum(['asc', 'desc'], { description: 'Order by creation. Default desc.' }));
const cursor = (what: string) => Type.Optional(Type.String({ description: `An id: ${what}.` }));

export const fileListQuery = Type.Object({
  limit,
  order,
  after: cursor('the page starts after it'),
  purpose: Type.Optional(Type.Enum([...purposes])),
});
export const listQuery = Type.Object({
  limit,
  order,
  after: cursor('the page starts after it'),
  before: cursor('the page ends before it'),
});
export const storeFileListQuery = Type.Object({
  ...listQuery.properties,
  filter: Type.Optional(Type.Enum(['in_progress', 'completed', 'failed', 'cancelled'])),
});

export const listOf = <T extends TSchema>(item: T) =>
  Type.Object({
    data: Type.Array(item),
    object: Type.Literal('list'),
    first_id: orNull(text),
    last_id: orNull(text),
    has_more: Type.Boolean(),
  });

const countsSchema = Type.Object({
  in_progress: count,
  completed: count,
  failed: count,
  cancelled: count,
  total: count,
});

export const vectorStoreSchema = Type.Object(
  {
    id: Type.String({ description: 'vs_…: the id of the source with a different prefix.' }),
    object: Type.Literal('vector_store'),
    created_at: seconds,
    name: text,
    description: orNull(text),
    usage_bytes: Type.Integer({ minimum: 0, description: 'The size of the text in bytes.' }),
    file_counts: countsSchema,
    status: Type.Enum(['in_progress', 'completed']),
    last_active_at: seconds,
    metadata: mapOf(text),
    expires_after: Type.Null(),
    expires_at: Type.Null(),
  },
  { $id: 'OpenAIVectorStore', description: 'A source of type `knowledge/documents`, as a vector store.' },
);

const attributeValue = Type.Union([Type.String({ maxLength: 512 }), Type.Number(), Type.Boolean()]);
const keyed = <T extends TSchema>(value: T, description: string) =>
  mapOf(value, {
    names: { minLength: 1, maxLength: 64 },
    maxProperties: 16,
    ...jsonBytes(limits.metadataBytesMax),
    description,
  });
const attributes = orNull(
  keyed(attributeValue, 'Metadata of the document: at most 16 values of up to 512 characters.'),
);
const metadata = orNull(keyed(Type.String({ maxLength: 512 }), 'At most 16 strings of up to 512 characters.'));
const chunkingStrategy = Type.Unsafe<unknown>({
  description: 'Only `{"type": "auto"}`: documents are split at headings and paragraphs.',
});
const expiresAfter = Type.Optional(Type.Null({ description: 'Only null: vector stores do not expire.' }));

/** The maximum number of files in one batch. */
const batchFilesMax = 500;
const fileIds = Type.Array(text, { minItems: 1, maxItems: batchFilesMax });

const naming = {
  name: Type.Optional(orNull(Type.String({ maxLength: 256 }))),
  metadata: Type.Optional(metadata),
  expires_after: expiresAfter,
};
export const vectorStoreCreateSchema = strict({
  ...naming,
  description: Type.Optional(Type.String({ maxLength: 512 })),
  file_ids: Type.Optional(Type.Array(text, { maxItems: batchFilesMax })),
  chunking_strategy: Type.Optional(chunkingStrategy),
});
export const vectorStoreUpdateSchema = strict(naming);

const storeFileMembers = {
  attributes: Type.Optional(attributes),
  chunking_strategy: Type.Optional(chunkingStrategy),
};
export const storeFileCreateSchema = strict({ file_id: text, ...storeFileMembers });
export const storeFileUpdateSchema = strict({ attributes });
export const batchCreateSchema = strict({
  file_ids: Type.Optional(fileIds),
  files: Type.Optional(
    Type.Array(strict({ file_id: text, ...storeFileMembers }), { minItems: 1, maxItems: batchFilesMax }),
  ),
  ...storeFileMembers,
});

export const storeFileSchema = Type.Object(
  {
    id: Type.String({
      description: 'The id of the file. A document that was not created from a file has its own id (cdo_…).',
    }),
    object: Type.Literal('vector_store.file'),
    created_at: seconds,
    usage_bytes: count,
    vector_store_id: text,
    status: Type.Enum(['in_progress', 'completed', 'failed', 'cancelled']),
    last_error: orNull(
      Type.Object({ code: Type.Enum(['server_error', 'unsupported_file', 'invalid_file']), message: text }),
    ),
    attributes: mapOf(Type.Union([text, Type.Number(), Type.Boolean()])),
    chunking_strategy: Type.Object({ type: Type.Literal('other') }),
  },
  { $id: 'OpenAIVectorStoreFile', description: 'A document of a source, as a file of a vector store.' },
);

export const batchSchema = Type.Object(
  {
    id: Type.String({ description: 'vsfb_…: the id of the ingestion with a different prefix.' }),
    object: Type.Literal('vector_store.files_batch'),
    created_at: seconds,
    vector_store_id: text,
    status: Type.Enum(['in_progress', 'completed', 'failed', 'cancelled']),
    file_counts: countsSchema,
  },
  { $id: 'OpenAIFileBatch', description: 'An ingestion of several files.' },
);

const contentSchema = Type.Object({ type: Type.Literal('text'), text });
const pageOf = <T extends TSchema>(item: T, object: string) =>
  Type.Object({
    data: Type.Array(item),
    object: Type.Literal(object),
    has_more: Type.Literal(false),
    next_page: Type.Null(),
  });
export const storeFileContentSchema = pageOf(contentSchema, 'vector_store.file_content.page');

export const searchSchema = strict({
  query: Type.Union([
    Type.String({ minLength: 1, maxLength: 10_000 }),
    Type.Array(Type.String({ minLength: 1, maxLength: 10_000 }), {
      minItems: 1,
      maxItems: 20,
      description: 'Several queries are combined into one search.',
    }),
  ]),
  max_num_results: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: 'Default 10.' })),
  filters: Type.Optional(mapOf(Type.Unknown(), { description: 'A comparison or a compound filter over attributes.' })),
  ranking_options: Type.Optional(
    strict({
      ranker: Type.Optional(Type.Enum(['auto', 'none'], { description: '`none` turns reranking off.' })),
      score_threshold: Type.Optional(
        Type.Number({
          minimum: 0,
          maximum: 1,
          description: 'If above 0, results are ranked by similarity alone, and scores are cosine similarities.',
        }),
      ),
    }),
  ),
  rewrite_query: Type.Optional(Type.Literal(false, { description: 'Must be false: queries are not rewritten.' })),
});

const searchHitSchema = Type.Object(
  {
    file_id: text,
    filename: text,
    score: Type.Number(),
    attributes: storeFileSchema.properties.attributes,
    content: Type.Array(contentSchema),
  },
  { $id: 'OpenAISearchHit', description: 'A passage that a search found.' },
);
export const searchResultSchema = Type.Object({
  ...pageOf(ref(searchHitSchema), 'vector_store.search_results.page').properties,
  search_query: Type.Array(text),
});
