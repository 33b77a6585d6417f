import { imageSourceSchema, pictureSchema } from '../files/schema.ts';
import { ref, strict } from '../http/route/route.ts';
import { nameSchema } from '../lib/name-schema.ts';
import { pattern } from '../lib/patterns.ts';
import { Type } from '../lib/type.ts';

export const orgSchema = Type.Object(
  {
    id: Type.String({ description: 'org_…' }),
    app: Type.String(),
    name: Type.String(),
    slug: Type.Optional(Type.String()),
    kind: Type.Literal('company'),
    logo: Type.Optional(ref(imageSourceSchema)),
    sandbox: Type.Optional(Type.String()),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Org', description: 'An organisation of users, teams and agents.' },
);

const name = nameSchema();
const slug = Type.String({
  ...pattern(
    '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$',
    'must have 1 to 100 letters, digits and . _ -, and begin with a letter or digit',
  ),
  description: 'Unique within the app.',
});
const logo = Type.Union([ref(pictureSchema), Type.Null()]);

export const orgCreateSchema = strict({ name, slug: Type.Optional(slug), logo: Type.Optional(logo) });
export const orgUpdateSchema = strict({
  name: Type.Optional(name),
  slug: Type.Optional(slug),
  logo: Type.Optional(logo),
});
