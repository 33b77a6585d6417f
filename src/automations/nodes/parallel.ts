import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Runs several nodes concurrently. Fails as soon as one fails permanently. */
export const parallel = defineNode({
  kind: 'parallel',
  needs: undefined,
  members: Type.Object({ nodes: Type.Unknown() }, { additionalProperties: false }),
  nests: true,
  work: { style: 'fan-out' },
});
