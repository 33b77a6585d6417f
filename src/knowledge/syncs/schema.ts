import { freeMap, strict } from '../../http/route/route.ts';
import { documentTextKeyword } from '../../http/route/validation.ts';
import { limits } from '../../lib/limits.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import { contentSchema } from '../schema.ts';

const text = Type.String();
const textOrNull = Type.Union([Type.String(), Type.Null()]);
const modeSchema = Type.Enum(['full', 'changes']);

const cursorCharactersMax = 60_000;
export const syncSecondsDefault = 600;
const externalId = Type.String({
  minLength: 1,
  maxLength: 500,
  description: 'The id of the document where it comes from. It names one document of the source.',
});
const order = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Its version. A change with a lower one than the stored document’s is skipped.',
  }),
);
const fence = Type.Integer({ minimum: 1, description: 'The fence that the sync was started or resumed with.' });

export const syncCreateSchema = strict({
  mode: Type.Enum(['full', 'changes'], {
    description:
      '`full`: everything is sent, and completing the sync deletes what was not. `changes`: only what changed since the last cursor.',
  }),
  expires_in_seconds: Type.Optional(
    Type.Integer({
      minimum: 30,
      maximum: 86_400,
      description: 'How long after its last batch another connector must wait to resume or replace it. Default 600.',
    }),
  ),
  take_over: Type.Optional(
    Type.Boolean({
      description: 'Resume or replace a sync that has not expired. Its connector gets 409 from then on.',
    }),
  ),
});

const upsertSchema = strict({
  external_id: externalId,
  order,
  content: Type.Optional(contentSchema),
  file: Type.Optional(Type.String({ description: 'The id (fil_…) of an uploaded file, instead of `content`.' })),
  title: Type.Optional(Type.String({ maxLength: 1_000, description: 'Display title.' })),
  metadata: Type.Optional(freeMap('Free key-value map. Omitted, it becomes empty.')),
  source_url: Type.Optional(
    Type.String({ maxLength: limits.urlCharactersMax, description: 'Where a person finds the document.' }),
  ),
});

export const syncBatchSchema = strict(
  {
    fence,
    upserts: Type.Optional(Type.Array(upsertSchema, { maxItems: 100, description: 'New and changed documents.' })),
    deletes: Type.Optional(
      Type.Array(strict({ external_id: externalId, order }), { maxItems: 1_000, description: 'Deleted documents.' }),
    ),
    cursor: Type.Optional(
      Type.Union([Type.String({ maxLength: cursorCharactersMax }), Type.Null()], {
        description:
          'Where the connector continues after this batch. It is stored with the batch, and means nothing to the server.',
      }),
    ),
  },
  { [documentTextKeyword]: true },
);

const fenceOfEnd = Type.Optional(
  Type.Integer({
    minimum: 1,
    description:
      'The fence that the sync was started or resumed with. 409 if it is an old one, or if it is omitted after another connector has resumed the sync.',
  }),
);

export const syncCompleteSchema = strict({
  fence: fenceOfEnd,
  batches: Type.Integer({ minimum: 0, description: 'The number of batches that the connector sent.' }),
  documents: Type.Integer({ minimum: 0, description: 'The number of upserts in them.' }),
  confirm_deletions: Type.Optional(
    Type.Boolean({ description: 'Delete what was not seen even if it is more than half of the source.' }),
  ),
});

export const syncAbortSchema = strict({ fence: fenceOfEnd });

export const syncSchema = Type.Object(
  {
    id: Type.String({ description: 'csy_…' }),
    source: Type.String({ description: 'cso_…' }),
    mode: modeSchema,
    status: Type.Enum(['active', 'expired', 'completing', 'succeeded', 'aborted'], {
      description:
        '`expired`: its connector has been silent for too long, so the next one resumes or replaces it. `completing`: what was sent is still being indexed.',
    }),
    fence: Type.Integer({
      description: 'Every batch names it, and the end of a sync that was resumed. Resuming the sync changes it.',
    }),
    cursor: Type.Union([Type.String(), Type.Null()], {
      description:
        'Of the last batch; at the start of a sync of changes, of the one before. Null: begin at the beginning.',
    }),
    next_batch: Type.Integer({ description: 'The number of the next batch.' }),
    documents: Type.Integer({ description: 'The number of upserts received.' }),
    pending: Type.Integer({ description: 'The number of upserts and deletes that are not in the index yet.' }),
    stats: mapOf(Type.Unknown(), {
      description:
        'What became of them: `written`, `unchanged`, `outdated` (a lower `order`), `deleted`, `failed`, and up to 100 `errors`.',
    }),
    expires_at: text,
    created_at: text,
    updated_at: text,
    completed_at: textOrNull,
  },
  { $id: 'KnowledgeSync', description: 'One run of a connector, a program that fills a source.' },
);
