import { freeMap, strict } from '../http/route/route.ts';
import { mapOf } from '../lib/map-schema.ts';
import { nameSchema } from '../lib/name-schema.ts';
import { Type } from '../lib/type.ts';
import { passwordCharacters } from './passwords.ts';

const optionalText = Type.Optional(Type.String());

export const userSchema = Type.Object(
  {
    id: Type.String({ description: 'usr_…' }),
    app: Type.String(),
    email: optionalText,
    name: optionalText,
    org: optionalText,
    org_name: optionalText,
    org_role: Type.Optional(Type.Enum(['admin', 'member', 'viewer'])),
    is_system_user: Type.Boolean(),
    groups_overage: Type.Optional(
      Type.Literal(true, {
        description:
          'The last token of an issuer left out the groups of the user, because there are too many. It grants none.',
      }),
    ),
    metadata: mapOf(Type.Unknown()),
    sandbox: optionalText,
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'User', description: 'An end user of an app.' },
);

const email = Type.String({ format: 'email', maxLength: 254, description: 'Unique in the app or sandbox.' });
const name = nameSchema();
const password = Type.String({ minLength: passwordCharacters.min, maxLength: passwordCharacters.max });
const orgRole = Type.Enum(['admin', 'member', 'viewer']);

export const userCreateSchema = strict({
  email,
  name: Type.Optional(name),
  password: Type.Optional(password),
  org: Type.Optional(Type.String({ description: 'org_…' })),
  org_role: Type.Optional(orgRole),
  is_system_user: Type.Optional(Type.Boolean({ description: 'Whether the user represents a program.' })),
  metadata: Type.Optional(freeMap('Stored unchanged.')),
});

export const userUpdateSchema = strict({
  email: Type.Optional(email),
  name: Type.Optional(name),
  password: Type.Optional(password),
  org: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  org_role: Type.Optional(orgRole),
  metadata: Type.Optional(freeMap('Replaces the whole map.')),
});
