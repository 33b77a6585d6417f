import { type Static, type TSchema, Type } from 'typebox';
import { strict } from '../http/route.ts';
import type { Measure } from '../tenancy/quotas.ts';

const used = Type.Integer({ description: 'What is used now.' });
const limit = Type.Union([Type.Integer(), Type.Null()], { description: 'The bound; null for none.' });

export const usageSchema = Type.Object(
  {
    file_bytes: Type.Object({ used, limit }, { description: 'Bytes of files.' }),
    documents: Type.Object({ used, limit }, { description: 'Documents of knowledge.' }),
    pages: Type.Object(
      { used, limit, resets_at: Type.String({ description: 'When the day (UTC) is over.' }) },
      { description: 'Pages that were extracted or pulled today.' },
    ),
    sandboxes: Type.Object({ used, limit }, { description: 'Sandboxes, counted in production.' }),
  } satisfies Record<Measure, TSchema>,
  { $id: 'Usage', description: 'What an app uses of what is bounded, in production or in one sandbox.' },
);

const bound = Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()]));

export const quotasSchema = strict(
  { file_bytes: bound, documents: bound, pages: bound, sandboxes: bound } satisfies Record<Measure, TSchema>,
  {
    description:
      'Bounds of your own, at most what the operator of the server gives the app; null takes one away. They hold in production and in each sandbox for itself.',
  },
);
export type QuotasInput = Static<typeof quotasSchema>;
