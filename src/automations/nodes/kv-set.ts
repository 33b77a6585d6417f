import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Writes a user's entry in the transaction of its journal entry, and therefore exactly once. */
export const kvSet = defineNode({
  kind: 'kv_set',
  needs: { area: 'kv', reads: false },
  members: Type.Object(
    {
      user: Type.Optional(Type.String({ minLength: 1 })),
      key: Type.String({ minLength: 1 }),
      value: Type.Unknown(),
    },
    { additionalProperties: false },
  ),
  nests: true,
  work: {
    style: 'effect',
    run(db, members, context) {
      const value = typeof members.value === 'string' ? members.value : JSON.stringify(members.value ?? null);
      return context.services.kvSet(db, { user: members.user, key: members.key, value });
    },
  },
});
