import { pageQuery } from '../http/route/pages.ts';
import { Type } from '../lib/type.ts';

export const auditEntrySchema = Type.Object(
  {
    id: Type.String({ description: 'aud_…' }),
    at: Type.String(),
    actor: Type.Object({
      kind: Type.Enum(['user', 'secret_key', 'publishable_key', 'developer', 'inbound_url']),
      id: Type.String({ description: 'usr_…, dak_…, dva_…, or cso_… for the source of an inbound URL.' }),
    }),
    credential: Type.String({
      description:
        'The kind of credential: user (an access token), personal_token, secret_key, publishable_key, developer_token, session (of the console), upload_link or inbound_url.',
    }),
    action: Type.String({ description: 'The operation, such as createKey.' }),
    method: Type.String(),
    route: Type.String({ description: 'The path, with names in place of ids.' }),
    resource: Type.Optional(Type.String({ description: 'The id of the resource created, changed or named.' })),
    status: Type.Union([Type.Integer(), Type.Null()], {
      description:
        'The status of the response; null while the request is in progress, or when the server stopped before responding.',
    }),
    request_id: Type.String(),
    address: Type.Optional(Type.String({ description: 'Where the request came from.' })),
    attempts: Type.Optional(
      Type.Integer({
        description: 'The number of similar failed attempts within one minute that the entry represents.',
      }),
    ),
  },
  { $id: 'AuditEntry', description: 'One change: who made it, what it was, and how it ended.' },
);

const time = (description: string) => Type.Optional(Type.String({ maxLength: 40, description }));

export const auditQuery = Type.Object({
  ...pageQuery,
  actor: Type.Optional(Type.String({ description: 'usr_…, dak_…, dva_… or cso_…' })),
  action: Type.Optional(Type.String({ maxLength: 100 })),
  resource: Type.Optional(Type.String({ maxLength: 100 })),
  since: time('At or after this time (ISO 8601).'),
  until: time('Before this time (ISO 8601).'),
});

export const credentialUseSchema = Type.Object(
  {
    credential: Type.String({ description: 'usr_…, dak_… or tok_…' }),
    kind: Type.Enum(['user', 'secret_key', 'publishable_key', 'personal_token', 'developer_token']),
    day: Type.String({ description: 'The day (UTC).' }),
    first_at: Type.String(),
    last_at: Type.String(),
    requests: Type.Integer(),
    refused: Type.Integer({
      description: 'Requests among them that returned 401, 403 or 429; for a publishable key, failed sign-ins.',
    }),
  },
  { $id: 'CredentialUse', description: 'The use of one credential on one day.' },
);

export const credentialUseQuery = Type.Object({
  ...pageQuery,
  credential: Type.Optional(Type.String({ description: 'usr_…, dak_… or tok_…' })),
});
