import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Ends the run `completed`. */
export const complete = defineNode({
  kind: 'complete',
  needs: undefined,
  members: Type.Object({ result: Type.Optional(Type.Unknown()) }, { additionalProperties: false }),
  nests: false,
  nullable: ['result'],
  work: { style: 'pure', run: ({ result }) => (result === undefined ? {} : result) },
});
