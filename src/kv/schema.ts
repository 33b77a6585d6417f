import { Type } from 'typebox';
import { pageOf, pageQuery } from '../http/pages.ts';
import { ref, strict } from '../http/route.ts';

const timestamp = (description: string) => Type.String({ format: 'date-time', description });

const entryMembers = {
  user: Type.String({ description: 'The owner of the entry.' }),
  key: Type.String(),
  value: Type.String(),
  created_at: timestamp('When the key was first written.'),
  updated_at: timestamp('When the value was last written.'),
};

export const kvEntrySchema = Type.Object(entryMembers, {
  $id: 'KvEntry',
  description: 'A string stored under a key for one user.',
});

const kvListEntrySchema = Type.Object(
  {
    ...entryMembers,
    user_email: Type.Optional(Type.String()),
    user_name: Type.Optional(Type.String()),
  },
  { $id: 'KvListEntry', description: 'An entry in a list. Includes the user for developers and secret keys.' },
);

/** End users get only `data`; developers and servers also get the page members. */
export const kvListSchema = Type.Object({
  ...Type.Partial(pageOf(ref(kvListEntrySchema))).properties,
  data: Type.Array(ref(kvListEntrySchema)),
});

/** Accepts anything: `user` is ignored for end users, and `readUser` checks it for other callers. */
const userMember = Type.Optional(
  Type.Unknown({
    description: 'The user (`usr_…`). Required for developers and secret keys, ignored for end users.',
    examples: ['usr_0WkL3bzdM5pTq7GmVfXy2a'],
  }),
);

const valueMember = Type.String({
  minLength: 1,
  description: 'Any non-empty string, by default up to 1 MiB in UTF-8.',
});

export const createKvBody = strict({
  key: Type.String({ minLength: 1, description: 'Any non-empty string, by default up to 1,024 bytes in UTF-8.' }),
  value: valueMember,
  user: userMember,
});

export const putKvBody = strict({ value: valueMember, user: userMember });

/** The body of DELETE is optional; Fastify passes a missing one as null. */
export const deleteKvBody = Type.Unsafe<{ user?: unknown } | null>({
  type: ['object', 'null'],
  properties: { user: userMember },
  additionalProperties: false,
});

export const kvUserQuery = Type.Object({ user: userMember });

export const listKvQuery = Type.Object({
  ...pageQuery,
  user: Type.Optional(Type.String({ description: 'Only entries of this user.' })),
  user_search: Type.Optional(
    Type.String({
      maxLength: 500,
      description: "Substring of the user's e-mail or full name, case-insensitive.",
    }),
  ),
  key: Type.Optional(Type.String({ description: 'Only entries whose key begins with this literal prefix.' })),
});
