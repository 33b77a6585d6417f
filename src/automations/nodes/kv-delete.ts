import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Deletes a user's entry; its output is null, whether or not there was an entry. */
export const kvDelete = defineNode({
  kind: 'kv_delete',
  needs: { area: 'kv', reads: false },
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
    run: (db, members, context) => context.services.kvDelete(db, { user: members.user, key: members.key }),
  },
});
