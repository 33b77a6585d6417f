import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Reads a user's entry; its output is the entry, or null if there is none. */
export const kvGet = defineNode({
  kind: 'kv_get',
  needs: { area: 'kv', reads: true },
  members: Type.Object(
    {
      user: Type.Optional(Type.String({ minLength: 1 })),
      key: Type.String({ minLength: 1 }),
    },
    { additionalProperties: false },
  ),
  nests: true,
  work: {
    style: 'effect',
    run: (db, members, context) => context.services.kvGet(db, { user: members.user, key: members.key }),
  },
});
