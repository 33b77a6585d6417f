import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** The usual start of a graph: its output is the run's input. */
export const trigger = defineNode({
  kind: 'trigger',
  needs: undefined,
  members: Type.Object({}, { additionalProperties: false }),
  nests: false,
  work: { style: 'pure', run: (_members, context) => context.input ?? null },
});
