import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Builds a value from other values. */
export const transform = defineNode({
  kind: 'transform',
  needs: undefined,
  members: Type.Object({ value: Type.Unknown() }, { additionalProperties: false }),
  nests: true,
  work: { style: 'pure', run: (members) => members.value ?? null },
});
