import { Type } from 'typebox';
import { defineNode } from './kind.ts';

/** Where a graph usually starts: its output is the run's input. */
export const trigger = defineNode({
  kind: 'trigger',
  members: Type.Object({}, { additionalProperties: false }),
  nests: false,
  work: { style: 'pure', run: (_members, context) => context.input ?? null },
});
