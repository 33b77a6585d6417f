import { pageOf, pageQuery } from '../http/route/pages.ts';
import { ref, strict } from '../http/route/route.ts';
import { streamPositionSchema } from '../http/streams/schema.ts';
import { Type } from '../lib/type.ts';

const timestamp = (description: string) => Type.String({ format: 'date-time', description });

const entryMembers = {
  user: Type.String({ description: 'The owner of the entry.' }),
  key: Type.String(),
  value: Type.String(),
  created_at: timestamp('When the key was first written.'),
  updated_at: timestamp('When the value was last written.'),
  expires_at: Type.Optional(timestamp('When the entry expires. Absent if it does not.')),
};

export const kvEntrySchema = Type.Object(entryMembers, {
  $id: 'KvEntry',
  description: 'A string stored under a key for one user.',
});

const kvPutSchema = Type.Object(
  {
    ...entryMembers,
    value: Type.Union([Type.String(), Type.Null()], {
      description: 'The value; null if it has over 64 KiB and has already been overwritten.',
    }),
    etag: Type.String({ description: 'The entity tag of the entry.' }),
  },
  { $id: 'KvPut', description: 'The data of the event `put`.' },
);
const kvRemovalSchema = Type.Object(
  { user: entryMembers.user, key: entryMembers.key },
  { $id: 'KvRemoval', description: 'The data of the events `delete` and `expire`.' },
);
export const kvChangeSchema = Type.Union([ref(kvPutSchema), ref(kvRemovalSchema), ref(streamPositionSchema)], {
  $id: 'KvChange',
  description: 'The data of an event of a watch.',
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

const ttlMember = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: 315_360_000,
    description: 'Seconds until the entry expires. Without it, the entry does not expire.',
  }),
);

export const createKvBody = strict({
  key: Type.String({ minLength: 1, description: 'Any non-empty string, by default up to 1,024 bytes in UTF-8.' }),
  value: valueMember,
  ttl_seconds: ttlMember,
  user: userMember,
});

export const putKvBody = strict({ value: valueMember, ttl_seconds: ttlMember, user: userMember });

const keyMember = Type.String({ minLength: 1, description: 'The key.' });
const byMember = Type.Optional(
  Type.Integer({
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'The number to add; may be negative. Default 1.',
  }),
);
const keptTtlMember = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: 315_360_000,
    description: 'Sets when the entry expires. Without it, the expiry of an existing entry stays as it is.',
  }),
);

export const incrementKvBody = strict({
  key: keyMember,
  by: byMember,
  ttl_seconds: keptTtlMember,
  user: userMember,
});

const ifMatch = Type.Optional(
  Type.String({
    description: 'Like the header If-Match: the batch fails unless the entry has this tag, or with `*` exists.',
  }),
);
const ifNoneMatch = Type.Optional(
  Type.String({ description: 'Like the header If-None-Match: `*` fails the batch when the entry exists.' }),
);

/** One operation of a batch. Which members it takes depends on `op`: see batch.ts. */
export const kvOperation = strict({
  op: Type.Enum(['get', 'put', 'delete', 'increment']),
  key: keyMember,
  value: Type.Optional(valueMember),
  ttl_seconds: keptTtlMember,
  by: byMember,
  if_match: ifMatch,
  if_none_match: ifNoneMatch,
});

export const kvBatchBody = strict({
  operations: Type.Array(kvOperation, { minItems: 1, maxItems: 100 }),
  user: userMember,
});

const batchResult = Type.Object(
  {
    op: Type.String(),
    key: Type.String(),
    entry: Type.Optional(Type.Union([ref(kvEntrySchema), Type.Null()])),
    etag: Type.Optional(Type.String({ description: 'The state of the entry, for `if_match`.' })),
    deleted: Type.Optional(Type.Boolean({ description: 'For a delete: whether the entry existed.' })),
  },
  { $id: 'KvBatchResult', description: 'The result of one operation of a batch.' },
);

export const kvBatchResponse = Type.Object({ data: Type.Array(ref(batchResult)) });

export const kvPrefixQuery = Type.Object({
  prefix: Type.Optional(Type.String({ description: 'Only keys with this literal prefix.' })),
  cursor: Type.Optional(Type.String({ description: 'Continues after the page that returned it as `next_cursor`.' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'Entries per page. Default 100.' })),
  user: userMember,
});

export const kvPrefixPage = Type.Object({
  data: Type.Array(ref(kvEntrySchema)),
  next_cursor: Type.Union([Type.String(), Type.Null()], { description: 'Null on the last page.' }),
});

export const kvWatchQuery = Type.Object({
  key: Type.Optional(Type.String({ minLength: 1, description: 'Only this key.' })),
  prefix: Type.Optional(Type.String({ description: 'Only keys with this literal prefix.' })),
  user: userMember,
});

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
