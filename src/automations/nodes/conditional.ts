import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Chooses between two nodes. The engine has already evaluated `when` to true or false. */
export const conditional = defineNode({
  kind: 'conditional',
  needs: undefined,
  members: Type.Object(
    { when: Type.Unknown(), on_true: Type.String(), on_false: Type.String() },
    { additionalProperties: false },
  ),
  expressions: ['when'],
  edges: ['on_true', 'on_false'],
  nests: false,
  work: { style: 'pure', run: (members) => ({ result: truthy(members.when) }) },
});

/** Casts like JSONata's `$boolean`: empty strings, arrays and objects are false, and so is an array of false values. */
export function truthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(truthy);
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}
