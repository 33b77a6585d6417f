import { Type } from 'typebox';
import { defineNode } from './kind.ts';

/** Does several nodes at once; fails as soon as one of them has failed for good. */
export const parallel = defineNode({
  kind: 'parallel',
  members: Type.Object({ nodes: Type.Unknown() }, { additionalProperties: false }),
  nests: true,
  work: { style: 'fan-out' },
});
