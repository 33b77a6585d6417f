import { freeMap, strict } from '../http/route/route.ts';
import { mapOf } from '../lib/map-schema.ts';
import { nameSchema } from '../lib/name-schema.ts';
import { Type } from '../lib/type.ts';
import { userSchema } from '../users/schema.ts';

const optionalText = Type.Optional(Type.String());

export const teamSchema = Type.Object(
  {
    id: Type.String({ description: 'tem_…' }),
    app: Type.String(),
    name: Type.String(),
    description: optionalText,
    org: optionalText,
    membership_status: Type.Optional(
      Type.Enum(['joined', 'not_joined'], { description: 'The membership status of the calling user.' }),
    ),
    metadata: mapOf(Type.Unknown()),
    sandbox: optionalText,
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Team', description: 'Users and agents who share what the team owns.' },
);

const name = nameSchema();
const description = Type.String({ maxLength: 10_000 });

export const teamCreateSchema = strict({
  name,
  description: Type.Optional(description),
  org: Type.Optional(Type.String({ description: 'org_…' })),
  metadata: Type.Optional(freeMap('Stored unchanged.')),
});

export const teamUpdateSchema = strict({
  name: Type.Optional(name),
  description: Type.Optional(description),
  metadata: Type.Optional(freeMap('Replaces the whole map.')),
});

const role = Type.Enum(['owner', 'admin', 'member']);

export const membershipSchema = Type.Object(
  {
    id: Type.String({ description: 'tmb_…' }),
    team: Type.Object({ id: Type.String() }),
    type: Type.Enum(['user', 'agent']),
    user: Type.Optional(Type.Partial(userSchema)),
    agent: Type.Optional(Type.Object({ id: Type.String(), name: optionalText, lookup_key: optionalText })),
    name: optionalText,
    role,
    joined_at: Type.String(),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Membership', description: 'One user or agent in a team.' },
);

export const memberCreateSchema = strict({
  user: Type.Optional(Type.String({ description: 'usr_…' })),
  agent: Type.Optional(Type.String({ description: 'agt_…' })),
  role: Type.Optional(role),
});

export const memberUpdateSchema = strict({ role });

export const memberRemoveSchema = strict({ user: optionalText, agent: optionalText });
