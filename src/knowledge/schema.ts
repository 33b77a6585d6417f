import { mediaTypePattern } from '../files/media-types.ts';
import { pageQuery } from '../http/route/pages.ts';
import { freeMap, ref, strict } from '../http/route/route.ts';
import { documentTextKeyword } from '../http/route/validation.ts';
import { limits } from '../lib/limits.ts';
import { mapOf } from '../lib/map-schema.ts';
import { Type } from '../lib/type.ts';
import { warningsOf } from '../lib/warnings-schema.ts';
import { lookupKeyFilter, lookupKeyInput } from '../tenancy/lookup-keys.ts';
import { embedderChange, embedderInput, rerankModel } from './embedding/schema.ts';
import { aclSchema } from './permissions/schema.ts';
import { retentionChange, retentionInput, retentionMembers, versionMember } from './versions/schema.ts';

const takesDocuments = { [documentTextKeyword]: true };

const text = Type.String();
const optionalText = Type.Optional(Type.String());
const textOrNull = Type.Union([Type.String(), Type.Null()]);
const mapOrNull = Type.Union([mapOf(Type.Unknown()), Type.Null()]);
const texts = Type.Optional(Type.Array(Type.String(), { maxItems: 100 }));
const stateSchema = Type.Enum(['active', 'paused']);
const title = Type.Optional(Type.String({ maxLength: 1_000, description: 'Display title.' }));
const metadata = Type.Optional(freeMap('Free key-value map.'));

const credential = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 4_096, description }));
/** What a pull signs in with. No response contains it. */
export const credentialsSchema = strict({
  username: credential('For HTTP, with `password`.'),
  password: credential('For HTTP, with `username`.'),
  token: credential('For HTTP: a bearer token. For repositories: the token, as the password.'),
  access_key_id: credential('For buckets, with `secret_access_key`.'),
  secret_access_key: credential('For buckets, with `access_key_id`.'),
  session_token: credential('For buckets: of temporary keys.'),
});
const credentials = Type.Optional(
  Type.Union([credentialsSchema, Type.Null()], {
    description:
      'What pulls sign in with. They are encrypted, never shown, and sent only to the scheme, host and port of the payload: another address in the payload clears them, and so does another `url` or `bucket` that an end user sets. Null clears them too.',
  }),
);

const learnedModel = Type.Object({
  status: Type.Enum(['ready', 'over_quota'], {
    description:
      '`over_quota`: the latest model would exceed the app’s quota of bytes and is not stored. Until there is room, search uses the previous model, or only text and vectors.',
  }),
  bytes: Type.Integer({
    description: 'The size in bytes of the model in use; 0 without one. It counts towards `file_bytes`.',
  }),
  bytes_needed: Type.Union([Type.Integer(), Type.Null()], {
    description:
      'The size in bytes of the model that was not stored; null if `ready`, and for users and agents if some documents of the source are restricted.',
  }),
  trained_at: Type.Union([Type.String(), Type.Null()], { description: 'When the model in use was stored.' }),
});

const ingestionStatus = Type.Enum(['pending', 'running', 'awaiting_callback', 'succeeded', 'failed']);

export const sourceSchema = Type.Object(
  {
    id: Type.String({ description: 'cso_…' }),
    type: text,
    state: stateSchema,
    agent: textOrNull,
    context_installation: textOrNull,
    created_at: textOrNull,
    updated_at: textOrNull,
    lookup_key: textOrNull,
    learned_model: Type.Union([learnedModel, Type.Null()], {
      description: 'What search has learned from the source; null until it has learned something.',
    }),
    metadata: mapOrNull,
    org: textOrNull,
    parent_source: textOrNull,
    payload: mapOrNull,
    sandbox: textOrNull,
    team: textOrNull,
    thread: textOrNull,
    user: textOrNull,
    has_credentials: Type.Boolean({ description: 'Whether pulls sign in with stored credentials.' }),
    held_deletions: Type.Union(
      [
        Type.Object({
          documents: Type.Integer({ description: 'How many documents the last listing did not contain.' }),
          of: Type.Integer({ description: 'How many there were.' }),
          since: Type.String({ description: 'When the pull found this.' }),
        }),
        Type.Null(),
      ],
      {
        description:
          'Deletions that wait for a person, because the listing was empty or they are more than half of the source. A pull with `confirm_deletions` carries them out. Not shown to users and agents if some documents of the source are restricted.',
      },
    ),
    embedder: Type.Optional(
      Type.String({ description: 'The model that computes its vectors. Absent: the installation’s embedder does.' }),
    ),
    ...retentionMembers,
    warnings: Type.Optional(
      warningsOf(
        'payload.max_pagess',
        'Members of the payload that are not used and resemble members that are. Present only in the response that creates or changes the source.',
      ),
    ),
    statistics: Type.Optional(
      Type.Object(
        {
          documents: Type.Integer({ description: 'Number of documents.' }),
          last_ingestion: Type.Union([Type.Object({ status: ingestionStatus, created_at: text }), Type.Null()], {
            description: 'The newest ingestion; null if there was none.',
          }),
        },
        { description: 'Only in lists with `include=statistics`.' },
      ),
    ),
  },
  { $id: 'KnowledgeSource', description: 'Where knowledge comes from: documents, a page, a site, a file.' },
);

export const sourceKindListSchema = Type.Object({
  data: Type.Array(
    Type.Object({
      type: text,
      label: text,
      description: text,
      payload_schema: mapOf(Type.Unknown(), { description: 'JSON Schema of `payload`.' }),
      credentials_schema: Type.Optional(
        mapOf(Type.Unknown(), { description: 'JSON Schema of `credentials`. Absent: pulls of this kind use none.' }),
      ),
    }),
  ),
});

export const sourceListQuery = Type.Object({
  ...pageQuery,
  search: Type.Optional(Type.String({ description: 'Part of the type, case-insensitive.' })),
  type: optionalText,
  team: texts,
  thread: texts,
  installation: optionalText,
  agent: optionalText,
  org: optionalText,
  owner_scope: Type.Optional(Type.Enum(['any', 'individual', 'system'])),
  lookup_key: lookupKeyFilter,
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: limits.nameCharactersMax,
      description: 'Part of `name` in the metadata, or of `url` in the payload, case-insensitive.',
    }),
  ),
  include: Type.Optional(Type.Enum(['statistics'], { description: 'Adds `statistics` to each source of the page.' })),
});

export const sourceCreateSchema = strict({
  type: Type.String({ description: 'A type from the kinds list.' }),
  agent: optionalText,
  team: optionalText,
  user: optionalText,
  org: Type.Optional(
    Type.String({ description: 'The organisation, if it owns the source itself. Not allowed with another owner.' }),
  ),
  parent_source: optionalText,
  lookup_key: lookupKeyInput,
  credentials,
  payload: Type.Optional(freeMap('Configuration; its members depend on the type.')),
  metadata,
  state: Type.Optional(stateSchema),
  thread: optionalText,
  embedder: embedderInput,
  version_retention_days: retentionInput,
});

export const sourceUpdateSchema = strict({
  lookup_key: lookupKeyInput,
  credentials,
  payload: Type.Optional(freeMap('Replaces the whole payload.')),
  metadata: Type.Optional(freeMap('Replaces the whole map.')),
  state: Type.Optional(stateSchema),
  embedder: embedderChange,
  version_retention_days: retentionChange,
});

export const contentSchema = strict({
  data: Type.String({ description: 'The document: text, or its bytes in base64.' }),
  data_encoding: Type.Optional(Type.Enum(['raw', 'base64'], { description: 'Default raw.' })),
  content_type: Type.Optional(Type.String({ maxLength: 255, ...mediaTypePattern })),
  filename: Type.Optional(Type.String({ maxLength: 500 })),
});

const onActive = Type.Optional(
  Type.Enum(['return', 'queue', 'error'], {
    description:
      'What to do while another ingestion of the source is active: return that one (default), queue, or 409.',
  }),
);

export const ingestSchema = strict(
  {
    content: Type.Optional(contentSchema),
    file: Type.Optional(Type.String({ description: 'The id (fil_…) of an uploaded file.' })),
    pull: Type.Optional(Type.Boolean({ description: "Pull again from the source's configuration." })),
    title,
    metadata,
    acl: Type.Optional(ref(aclSchema)),
    dedupe: Type.Optional(
      Type.Boolean({ description: 'Reuse a document with the same bytes and the same readers. Push only.' }),
    ),
    on_active: onActive,
    confirm_deletions: Type.Optional(
      Type.Boolean({
        description:
          'With `pull`: delete what the listing no longer contains, even if it is more than half of the source.',
      }),
    ),
  },
  takesDocuments,
);

/** One document of a batch. */
export const pushSchema = strict({
  content: Type.Optional(contentSchema),
  file: optionalText,
  title,
  metadata,
  dedupe: Type.Optional(Type.Boolean()),
});

export const ingestBatchSchema = strict(
  {
    items: Type.Array(pushSchema, { minItems: 1, maxItems: 100 }),
    acl: Type.Optional(ref(aclSchema)),
    on_active: onActive,
  },
  takesDocuments,
);

const errorMember = Type.Optional(mapOf(Type.Unknown()));

export const ingestionSchema = Type.Object(
  {
    id: Type.String({ description: 'cig_…' }),
    source: text,
    status: ingestionStatus,
    agent: optionalText,
    team: optionalText,
    user: optionalText,
    org: optionalText,
    error: errorMember,
    metadata: mapOf(Type.Unknown()),
    stats: mapOf(Type.Unknown()),
    started_at: optionalText,
    completed_at: optionalText,
    created_at: text,
    updated_at: text,
  },
  { $id: 'KnowledgeIngestion', description: 'A job that adds content to a source.' },
);

export const documentSchema = Type.Object(
  {
    id: Type.String({ description: 'cdo_…' }),
    source: text,
    title: optionalText,
    file: optionalText,
    agent: optionalText,
    team: optionalText,
    user: optionalText,
    org: optionalText,
    metadata: mapOf(Type.Unknown()),
    content_type: optionalText,
    content_hash: text,
    total_lines: Type.Integer(),
    total_size: Type.Integer(),
    total_chunks: Type.Integer({ description: 'Number of chunks, the parts that searches find.' }),
    source_url: optionalText,
    acl: Type.Optional(ref(aclSchema)),
    external_id: Type.Optional(
      Type.String({ description: 'Its id where it comes from, given by a connector or a pull.' }),
    ),
    version: versionMember,
    created_at: text,
    updated_at: text,
  },
  { $id: 'KnowledgeDocument', description: 'A document of a source.' },
);

export const documentListQuery = Type.Object({
  ...pageQuery,
  q: Type.Optional(Type.String({ description: 'Beginning of the title, case-insensitive.' })),
  source: texts,
  installation: texts,
  agent: texts,
});

export const documentUpdateSchema = strict(
  {
    content: Type.Optional(contentSchema),
    file: optionalText,
    title,
    metadata,
    acl: Type.Optional(
      Type.Union([ref(aclSchema), Type.Null()], {
        description: 'The readers of the new content. null: every reader of the source. Omitted: those of the old one.',
      }),
    ),
  },
  takesDocuments,
);

export const documentContentQuery = Type.Object({
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
  unit: Type.Optional(Type.Enum(['lines', 'bytes'])),
});

const fragment = Type.Optional(
  Type.String({
    description: 'For a web page: the fragment of its address that leads to the heading, without `#`.',
  }),
);

export const documentChunkSchema = Type.Object(
  {
    id: Type.String({ description: 'cim_…' }),
    content: Type.String(),
    heading_path: Type.Array(Type.String(), { description: 'The headings above it, outermost first.' }),
    fragment,
    start_line: Type.Integer(),
    end_line: Type.Integer({ description: 'The last line, counted from 1 (inclusive).' }),
    start_byte: Type.Integer(),
    end_byte: Type.Integer({ description: 'The end in bytes, counted from 0 (exclusive).' }),
  },
  { $id: 'KnowledgeDocumentChunk', description: 'A part of a document that searches return.' },
);

export const documentContentSchema = Type.Object(
  {
    id: text,
    content: text,
    total_lines: Type.Integer(),
    total_size: Type.Integer(),
    title: optionalText,
    metadata: mapOf(Type.Unknown()),
    unit: optionalText,
    offset: Type.Optional(Type.Integer()),
    limit: Type.Optional(Type.Integer()),
    start_line: Type.Optional(Type.Integer()),
    end_line: Type.Optional(Type.Integer()),
    start_byte: Type.Optional(Type.Integer()),
    end_byte: Type.Optional(Type.Integer()),
  },
  { $id: 'KnowledgeDocumentContent', description: 'Text of a document, or a slice of it.' },
);

const searchMembers = {
  query: Type.String({ minLength: 1, maxLength: 10_000 }),
  mode: Type.Optional(Type.Enum(['hybrid', 'vector', 'fulltext'], { description: 'Default hybrid.' })),
  max_results: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Default 20.' })),
  min_similarity: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'Minimum cosine similarity of vector hits.' }),
  ),
  recency_days: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 100_000 })),
  filter: Type.Optional(freeMap('Conditions on document metadata.')),
  explain: Type.Optional(Type.Boolean()),
  rerank: Type.Optional(
    Type.Boolean({ description: 'Whether to rerank. Default true in mode hybrid if the server has a reranker.' }),
  ),
  rerank_model: rerankModel,
  highlights: Type.Optional(
    Type.Boolean({ description: "Whether to return the positions of the query's words in each hit." }),
  ),
  context: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 5,
      description: 'Number of neighbouring chunks to return on either side of each hit.',
    }),
  ),
  group_by: Type.Optional(Type.Literal('document', { description: 'Returns only the best hit of each document.' })),
  facets: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
      maxItems: 10,
      description: 'Members of document metadata whose values to count.',
    }),
  ),
};

export const searchSchema = strict(searchMembers);
export const agentSearchSchema = strict({ ...searchMembers, source_types: texts });
export const visibleSearchSchema = strict({
  ...searchMembers,
  source_types: texts,
  sources: Type.Optional(
    Type.Array(Type.String(), { minItems: 1, maxItems: 100, description: 'cso_…; only these sources.' }),
  ),
});

const lineAndByteMembers = {
  start_line: Type.Integer(),
  end_line: Type.Integer(),
  start_byte: Type.Integer(),
  end_byte: Type.Integer(),
  start_page: Type.Optional(Type.Integer({ description: 'Present if the text has page marks.' })),
  end_page: Type.Optional(Type.Integer()),
};

const searchHitSchema = Type.Object(
  {
    id: Type.String({ description: 'cim_…' }),
    kind: Type.Literal('chunk'),
    content: text,
    content_type: optionalText,
    raw_content: mapOf(Type.Unknown()),
    metadata: mapOf(Type.Unknown()),
    type: text,
    document: text,
    source: text,
    title: optionalText,
    source_url: optionalText,
    fragment,
    version: versionMember,
    ...lineAndByteMembers,
    score: Type.Number(),
    created_at: text,
    highlights: Type.Optional(
      Type.Array(
        Type.Object({
          start: Type.Integer({ description: 'The start of the match in `content`, in UTF-16 code units.' }),
          end: Type.Integer({ description: 'The end of the match (exclusive).' }),
          start_byte: Type.Integer({ description: "The start of the match in the document's text, in bytes." }),
          end_byte: Type.Integer(),
        }),
      ),
    ),
    context: Type.Optional(
      Type.Object(
        { content: text, ...lineAndByteMembers },
        { description: 'The hit and its neighbours as one passage of the document.' },
      ),
    ),
    explain: Type.Optional(mapOf(Type.Unknown())),
  },
  { $id: 'SearchHit', description: 'A passage and its position.' },
);

export const searchResultSchema = Type.Object({
  data: Type.Array(ref(searchHitSchema)),
  facets: Type.Optional(
    mapOf(
      Type.Array(
        Type.Object({ value: Type.Union([Type.String(), Type.Number(), Type.Boolean()]), count: Type.Integer() }),
      ),
      { description: 'How many documents among the best 1,000 passages have each value; the 20 most frequent.' },
    ),
  ),
  vectors_unavailable: Type.Optional(
    Type.String({ description: 'Why the query has no vector. The results are those of full-text search.' }),
  ),
  rerank_unavailable: Type.Optional(Type.String({ description: 'Why the results are not reranked.' })),
  explain: Type.Optional(mapOf(Type.Unknown())),
});

export const inboundUrlSchema = Type.Object({
  url: text,
  signed: Type.Boolean({ description: 'Whether posts must be signed as in Standard Webhooks.' }),
  previous_secret_until: Type.Optional(
    Type.String({ description: 'Until then, signatures with the previous secret are also accepted.' }),
  ),
});

export const inboundOverlapSecondsDefault = 24 * 3_600;
export const inboundSecretInputSchema = strict({
  secret: Type.Optional(
    Type.String({
      maxLength: 100,
      description: 'whsec_…, the secret that the sender provides. Default: a new one, to give to the sender.',
    }),
  ),
  overlap_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 7 * 24 * 3_600,
      description: 'How long signatures with the previous secret are also accepted, in seconds. Default 86400, a day.',
    }),
  ),
});
export const inboundSecretSchema = Type.Object({
  secret: Type.String({ description: 'whsec_…, only in this response: it cannot be read again.' }),
  previous_secret_until: Type.Optional(Type.String()),
});
