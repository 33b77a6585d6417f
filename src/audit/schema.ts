import { Type } from 'typebox';
import { pageQuery } from '../http/pages.ts';

export const auditEntrySchema = Type.Object(
  {
    id: Type.String({ description: 'aud_…' }),
    at: Type.String(),
    actor: Type.Object({
      kind: Type.Enum(['user', 'secret_key', 'publishable_key', 'developer', 'inbound_url']),
      id: Type.String({ description: 'usr_…, dak_…, dva_… or, of an inbound URL, its source cso_…' }),
    }),
    credential: Type.String({
      description:
        'What the actor showed: user (an access token), personal_token, secret_key, publishable_key, developer_token, session (of the console), upload_link or inbound_url.',
    }),
    action: Type.String({ description: 'The operation, such as createKey.' }),
    method: Type.String(),
    route: Type.String({ description: 'The path, with names in the place of ids.' }),
    resource: Type.Optional(Type.String({ description: 'The id of what was made, changed or named.' })),
    status: Type.Union([Type.Integer(), Type.Null()], {
      description: 'The status of the answer; null while there is none, or when the server died before there was one.',
    }),
    request_id: Type.String(),
    address: Type.Optional(Type.String({ description: 'Where the request came from.' })),
    attempts: Type.Optional(
      Type.Integer({ description: 'The entry counts so many failed attempts of one minute that are alike.' }),
    ),
  },
  { $id: 'AuditEntry', description: 'One change: who, what, and how it ended.' },
);

const time = (description: string) => Type.Optional(Type.String({ maxLength: 40, description }));

export const auditQuery = Type.Object({
  ...pageQuery,
  actor: Type.Optional(Type.String({ description: 'usr_…, dak_…, dva_… or cso_…' })),
  action: Type.Optional(Type.String({ maxLength: 100 })),
  resource: Type.Optional(Type.String({ maxLength: 100 })),
  since: time('From this time on (ISO 8601).'),
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
    refused: Type.Integer({ description: 'Of them, answered 401, 403 or 429; of a publishable key: failed sign-ins.' }),
  },
  { $id: 'CredentialUse', description: 'What one credential did in one day.' },
);

export const credentialUseQuery = Type.Object({
  ...pageQuery,
  credential: Type.Optional(Type.String({ description: 'usr_…, dak_… or tok_…' })),
});
