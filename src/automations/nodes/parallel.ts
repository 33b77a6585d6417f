import { Type } from 'typebox';
import { defineNode } from './kind.ts';

/** Runs several nodes concurrently; fails as soon as one has failed permanently. */
export const parallel = defineNode({
  kind: 'parallel',
  members: Type.Object({ nodes: Type.Unknown() }, { additionalProperties: false }),
  nests: true,
  work: { style: 'fan-out' },
});
