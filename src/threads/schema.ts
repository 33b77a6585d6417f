import { freeMap, strict } from '../http/route/route.ts';
import { mapOf } from '../lib/map-schema.ts';
import { nameSchema } from '../lib/name-schema.ts';
import { Type } from '../lib/type.ts';

const optionalText = Type.Optional(Type.String());

export const threadSchema = Type.Object(
  {
    id: Type.String({ description: 'thr_…' }),
    app: Type.String(),
    title: optionalText,
    org: optionalText,
    team: optionalText,
    user: optionalText,
    agent: optionalText,
    sandbox: optionalText,
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Thread', description: 'A conversation whose messages sources can ingest.' },
);

const title = Type.Optional(nameSchema());

export const threadCreateSchema = strict({
  title,
  user: optionalText,
  team: optionalText,
  agent: optionalText,
  org: optionalText,
});
export const threadUpdateSchema = strict({ title });

export const messageSchema = strict({
  content: Type.String({ minLength: 1 }),
  metadata: Type.Optional(freeMap('Free key-value map.')),
});

export const messageResultSchema = Type.Object({
  id: Type.String({ description: 'msg_…' }),
  thread: Type.String(),
  content: Type.String(),
  metadata: mapOf(Type.Unknown()),
  created_at: Type.String(),
});
