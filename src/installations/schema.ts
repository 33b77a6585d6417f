import { strict } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';

const installationKinds = ['webhook/inbound', 'thread/messages'] as const;

export const installationSchema = Type.Object(
  {
    id: Type.String({ description: 'cin_…' }),
    app: Type.String(),
    agent: Type.String(),
    kind: Type.Enum(installationKinds),
    sandbox: Type.Optional(Type.String()),
    inbound_url: Type.Optional(Type.String({ description: 'The secret URL that accepts documents.' })),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Installation', description: 'A connection of an agent, and the source that it fills.' },
);

export const installationCreateSchema = strict({
  agent: Type.String({ description: 'agt_…' }),
  kind: Type.Enum(installationKinds),
});

export const installationUpdateSchema = strict({});
