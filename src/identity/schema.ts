import type { Static } from 'typebox';
import { strict } from '../http/route/route.ts';
import { limits } from '../lib/limits.ts';
import { mapOf } from '../lib/map-schema.ts';
import { Type } from '../lib/type.ts';

const url = (description: string) => Type.String({ minLength: 8, maxLength: 2_000, description });
const claim = Type.Optional(Type.String({ minLength: 1, maxLength: 200 }));
const mapped = (description: string) =>
  Type.Optional(mapOf(Type.String(), { description, maxProperties: 500, names: { maxLength: 200 } }));

/** Values without a mapping are ignored, so a token can only name what the app has listed. */
const claimsSchema = strict(
  {
    org: Type.Optional(
      strict({
        claim: Type.String({ minLength: 1, maxLength: 200 }),
        values: mapped('Organisations (org_…) by value.'),
      }),
    ),
    role: Type.Optional(
      strict({
        claim: Type.String({ minLength: 1, maxLength: 200 }),
        values: Type.Optional(
          mapOf(Type.Enum(['admin', 'member', 'viewer']), {
            names: { maxLength: 200 },
            description: 'Roles in the organisation by value. Default `member`.',
            maxProperties: 500,
          }),
        ),
      }),
    ),
    teams: Type.Optional(
      strict({ claim: Type.String({ minLength: 1, maxLength: 200 }), values: mapped('Teams (tem_…) by value.') }),
    ),
    groups: Type.Optional(
      strict(
        { claim: Type.String({ minLength: 1, maxLength: 200 }) },
        {
          description:
            'The claim that lists the groups of a user. They are groups of the namespace that is the issuer. A token without it grants none.',
        },
      ),
    ),
    name: claim,
  },
  { description: 'Which claims name the organisation, role, teams and name of a user. Other claims are ignored.' },
);
export type ClaimMapping = Static<typeof claimsSchema>;

const clientSchema = strict(
  {
    client_id: Type.String({ minLength: 1, maxLength: limits.nameCharactersMax }),
    client_secret: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1_000, description: 'Write-only: never returned.' }),
    ),
  },
  { description: 'The client that this server is at the issuer, for signing in to the web console.' },
);

const members = {
  issuer: url('The issuer, exactly as its tokens name it, such as https://login.example.com.'),
  audience: Type.String({ minLength: 1, maxLength: 2_000, description: 'The audience of tokens for this app.' }),
  jwks_url: Type.Union([url('The URL of the issuer’s keys. By default, it is discovered.'), Type.Null()]),
  create_users: Type.Boolean({ description: 'Whether an unknown account becomes a new user. Default false.' }),
  link_by_email: Type.Boolean({
    description:
      'Whether an unknown account is linked to the existing user with its e-mail, if the token says `email_verified`. Default false.',
  }),
  claims: claimsSchema,
  console: Type.Union([clientSchema, Type.Null()]),
};

export const issuerCreateSchema = strict({
  issuer: members.issuer,
  audience: members.audience,
  jwks_url: Type.Optional(members.jwks_url),
  create_users: Type.Optional(members.create_users),
  link_by_email: Type.Optional(members.link_by_email),
  claims: Type.Optional(members.claims),
  console: Type.Optional(members.console),
});

export const issuerUpdateSchema = strict({
  audience: Type.Optional(members.audience),
  jwks_url: Type.Optional(members.jwks_url),
  create_users: Type.Optional(members.create_users),
  link_by_email: Type.Optional(members.link_by_email),
  claims: Type.Optional(members.claims),
  console: Type.Optional(members.console),
});

export const issuerSchema = Type.Object(
  {
    id: Type.String({ description: 'iss_…' }),
    app: Type.String(),
    sandbox: Type.Optional(Type.String()),
    issuer: Type.String(),
    audience: Type.String(),
    jwks_url: Type.Optional(Type.String()),
    create_users: Type.Boolean(),
    link_by_email: Type.Boolean(),
    claims: mapOf(Type.Unknown()),
    console: Type.Optional(Type.Object({ client_id: Type.String() })),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'IdentityIssuer', description: 'An OpenID Connect issuer whose users are users of the app.' },
);
