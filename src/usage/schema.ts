import type { Static, TSchema } from 'typebox';
import { strict } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import type { Measure } from '../tenancy/quotas.ts';

const used = Type.Integer({ description: 'Current usage.' });
const limit = Type.Union([Type.Integer(), Type.Null()], { description: 'The limit, or null if there is none.' });

export const usageSchema = Type.Object(
  {
    file_bytes: Type.Object({ used, limit }, { description: 'Bytes of files and of learned search models.' }),
    documents: Type.Object({ used, limit }, { description: 'Knowledge documents.' }),
    pages: Type.Object(
      {
        used,
        limit,
        resets_at: Type.String({ description: 'When the day (UTC) ends and the count starts at 0 again.' }),
      },
      { description: 'Pages extracted or pulled today.' },
    ),
    tokens: Type.Object(
      {
        used,
        limit,
        resets_at: Type.String({ description: 'When the day (UTC) ends and the count starts at 0 again.' }),
      },
      { description: 'Tokens of the language model used today, including those reserved by requests in progress.' },
    ),
    sandboxes: Type.Object({ used, limit }, { description: 'Sandboxes, counted in production.' }),
  } satisfies Record<Measure, TSchema>,
  { $id: 'Usage', description: 'The usage and quotas of an app, in production or in one sandbox.' },
);

const bound = Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()]));

export const quotasSchema = strict(
  { file_bytes: bound, documents: bound, pages: bound, tokens: bound, sandboxes: bound } satisfies Record<
    Measure,
    TSchema
  >,
  {
    description:
      'The app’s own limits, at most those set by the operator of the server; null removes one. They apply to production and to each sandbox separately.',
  },
);
export type QuotasInput = Static<typeof quotasSchema>;
