import { strict } from '../http/route/route.ts';
import { nameSchema } from '../lib/name-schema.ts';
import { Type } from '../lib/type.ts';

const groupNamesMax = { namespace: 2_000, externalId: 500 };
/** The groups of production or of a sandbox, the members of a group, and the members in one request. */
export const groupsMax = 100_000;
export const groupMembersMax = 100_000;
const listedMembersMax = 10_000;

const name = nameSchema();
const namespace = Type.String({
  minLength: 1,
  maxLength: groupNamesMax.namespace,
  description:
    'Who names the group: an issuer, a connector, or your own word. The same name elsewhere is another group.',
});
const externalId = Type.String({
  minLength: 1,
  maxLength: groupNamesMax.externalId,
  description: 'The name of the group in its namespace, which never changes.',
});

export const groupSchema = Type.Object(
  {
    id: Type.String({ description: 'grp_…' }),
    app: Type.String(),
    sandbox: Type.Optional(Type.String()),
    namespace,
    external_id: externalId,
    name: Type.Optional(Type.String()),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Group', description: 'Users to whom documents can be restricted. Groups contain no groups.' },
);

export const groupListSchema = Type.Object({
  namespace: Type.Optional(Type.String({ description: 'Only groups of this namespace.' })),
  external_id: Type.Optional(Type.String({ description: 'Only groups with this name.' })),
  user: Type.Optional(Type.String({ description: 'Only groups of this user (usr_…).' })),
  search: Type.Optional(Type.String({ description: 'Part of the name or of the name in the namespace.' })),
});

export const groupCreateSchema = strict({
  namespace,
  external_id: externalId,
  name: Type.Optional(name),
});

export const groupUpdateSchema = strict({ name: Type.Optional(Type.Union([name, Type.Null()])) });

export const groupMemberSchema = Type.Object(
  {
    user: Type.Object({ id: Type.String(), email: Type.Optional(Type.String()), name: Type.Optional(Type.String()) }),
    created_at: Type.String(),
  },
  { $id: 'GroupMember', description: 'A user in a group.' },
);

export const groupMemberAddSchema = strict({ user: Type.String({ description: 'usr_…' }) });
export const groupMembersSchema = strict({
  users: Type.Array(Type.String(), {
    maxItems: listedMembersMax,
    description: 'The users (usr_…) who are the members from now on.',
  }),
});
