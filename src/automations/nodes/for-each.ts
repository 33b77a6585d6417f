import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Runs one node for every item, `concurrency` at a time. Fails as soon as one fails permanently. */
export const forEach = defineNode({
  kind: 'for_each',
  needs: undefined,
  members: Type.Object(
    {
      items: Type.Unknown(),
      node: Type.Unknown(),
      concurrency: Type.Optional(Type.Integer({ minimum: 1, maximum: 50 })),
    },
    { additionalProperties: false },
  ),
  expressions: ['items'],
  nests: true,
  work: { style: 'fan-out' },
});
