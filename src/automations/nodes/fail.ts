import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Ends the run `failed`; its output is the run's error. */
export const fail = defineNode({
  kind: 'fail',
  needs: undefined,
  members: Type.Object(
    { message: Type.String(), code: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })) },
    { additionalProperties: false },
  ),
  nests: false,
  work: { style: 'pure', run: (members) => ({ code: members.code ?? 'failed', message: members.message }) },
});
