import { imageSourceSchema, pictureSchema } from '../files/schema.ts';
import { freeMap, ref, strict } from '../http/route/route.ts';
import { defined } from '../lib/defined.ts';
import { mapOf } from '../lib/map-schema.ts';
import { nameSchema } from '../lib/name-schema.ts';
import { Type } from '../lib/type.ts';

const optionalText = Type.Optional(Type.String());

export const agentSchema = Type.Object(
  {
    id: Type.String({ description: 'agt_…' }),
    app: Type.String(),
    name: Type.String(),
    lookup_key: optionalText,
    description: optionalText,
    identity: Type.Optional(Type.String({ description: 'Who the agent is, as a prompt for a language model.' })),
    default_model: optionalText,
    email: optionalText,
    phone_number: optionalText,
    originator: optionalText,
    profile_picture: Type.Optional(ref(imageSourceSchema)),
    metadata: mapOf(Type.Unknown()),
    org: optionalText,
    team: optionalText,
    user: optionalText,
    sandbox: optionalText,
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Agent', description: 'An agent, owned by a user, a team or an organisation.' },
);

const text = (maxLength: number, description?: string) =>
  Type.Optional(Type.String({ maxLength, ...defined({ description }) }));
const name = nameSchema();

const details = {
  lookup_key: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Your own name for the agent, unique for its owner. Must not look like an id.',
    }),
  ),
  description: text(10_000),
  identity: text(100_000, 'Who the agent is, as a prompt for a language model.'),
  model: text(200, 'The model that the agent uses by default.'),
  email: text(254),
  phone_number: text(50),
  originator: text(200),
  metadata: Type.Optional(freeMap('Stored unchanged; replaces the whole map.')),
  profile_picture: Type.Optional(Type.Union([ref(pictureSchema), Type.Null()])),
};

export const agentCreateSchema = strict({
  name,
  ...details,
  org: Type.Optional(Type.String({ description: 'org_…' })),
  team: Type.Optional(Type.String({ description: 'tem_…' })),
  user: Type.Optional(Type.String({ description: 'usr_…' })),
});

export const agentUpdateSchema = strict({ name: Type.Optional(name), ...details });
