import { strict } from '../http/route/route.ts';
import { limits } from '../lib/limits.ts';
import { nameSchema } from '../lib/name-schema.ts';
import { Type } from '../lib/type.ts';
import { keyScopes } from '../tenancy/key-scopes.ts';
import { runRetentionSchema } from '../tenancy/run-retention.ts';
import { quotasSchema } from '../usage/schema.ts';

const nameField = nameSchema();

export const appSchema = Type.Object(
  {
    id: Type.String({ description: 'dap_…' }),
    name: Type.String(),
    run_retention: Type.Optional({
      ...runRetentionSchema,
      description:
        'How long runs of automations without `retention` are kept after their end. Absent in lists, and if they are kept for ever.',
    }),
    assistants: Type.Optional(
      Type.Boolean({
        description: '`false` if no assistant may connect to the app by OAuth. Absent if they may, and in lists.',
      }),
    ),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'App', description: 'A tenant. Every other resource belongs to an app.' },
);

export const appCreateSchema = strict({ name: nameField });
export const appUpdateSchema = strict({
  name: Type.Optional(nameField),
  quotas: Type.Optional(quotasSchema),
  run_retention: Type.Optional(Type.Union([runRetentionSchema, Type.Null()])),
  assistants: Type.Optional(
    Type.Boolean({
      description:
        'Whether assistants may connect to the MCP endpoint by OAuth, where the server runs with `QUARRY_MCP_OAUTH`. `false` also disconnects those that are.',
    }),
  ),
});

export const sandboxSchema = Type.Object(
  {
    id: Type.String({ description: 'sbx_…' }),
    app: Type.String(),
    name: Type.String(),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Sandbox', description: 'A copy of the app with its own data, isolated from production.' },
);

export const sandboxCreateSchema = strict({ name: nameField });
export const sandboxUpdateSchema = strict({ name: Type.Optional(nameField) });

export const keySchema = Type.Object(
  {
    id: Type.String({ description: 'dak_…' }),
    app: Type.String(),
    sandbox: Type.Optional(Type.String()),
    type: Type.Enum(['secret', 'publishable']),
    name: Type.Optional(Type.String()),
    hint: Type.String({ description: 'The first characters of the key.' }),
    full_key: Type.Optional(
      Type.String({ description: 'The key itself. Returned only in the response that creates it.' }),
    ),
    created_at: Type.String(),
    last_used_at: Type.Optional(Type.String({ description: 'Accurate to a few seconds.' })),
    revoked_at: Type.Optional(Type.String()),
    expires_at: Type.Optional(Type.String({ description: 'The key stops working at this time.' })),
    scopes: Type.Optional(
      Type.Array(Type.Enum([...keyScopes]), { description: 'Absent if the key may do everything.' }),
    ),
  },
  { $id: 'ApiKey', description: 'A secret key acts for the whole app; a publishable key only names it.' },
);

export const keyCreateSchema = strict({
  type: Type.Enum(['secret', 'publishable']),
  name: Type.Optional(nameField),
  sandbox: Type.Optional(Type.String({ description: 'sbx_…; the key then works only in that sandbox.' })),
  expires_in_days: Type.Optional(
    Type.Integer({ minimum: 1, maximum: limits.keyDaysMax, description: 'Default: it does not expire.' }),
  ),
  scopes: Type.Optional(
    Type.Array(Type.Enum([...keyScopes]), {
      minItems: 1,
      maxItems: keyScopes.length,
      uniqueItems: true,
      description:
        'For a secret key: what it may do. `read` allows reading everything, an area such as `kv` all operations of that area, `kv:read` reading in it. Default: everything.',
    }),
  ),
});
