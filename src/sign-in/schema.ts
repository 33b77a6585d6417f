import { ref, strict } from '../http/route/route.ts';
import { nameSchema } from '../lib/name-schema.ts';
import { Type } from '../lib/type.ts';
import { passwordCharacters } from '../users/passwords.ts';
import { userSchema } from '../users/schema.ts';
import { personalTokenDays } from './service.ts';

const optionalText = Type.Optional(Type.String());

export const loginSchema = strict({
  email: Type.String({ minLength: 1, maxLength: 254 }),
  password: Type.String({ minLength: 1, maxLength: passwordCharacters.max }),
});

export const refreshSchema = strict({ refresh_token: Type.String({ minLength: 1, maxLength: 500 }) });

/** One shape for both kinds of token: a session (access and refresh token) or a personal token. */
export const mintedTokenSchema = Type.Object(
  {
    token: Type.String({ description: 'The access token, or the personal token.' }),
    access_token: optionalText,
    refresh_token: optionalText,
    token_type: Type.Literal('Bearer'),
    expires_in: Type.Optional(Type.Integer({ description: 'The lifetime of the token in seconds.' })),
    user: Type.Optional(ref(userSchema)),
    id: optionalText,
    name: optionalText,
    expires_at: optionalText,
    created_at: optionalText,
  },
  { $id: 'MintedToken', description: 'A new credential of a user. It is not shown again.' },
);

export const tokenCreateSchema = strict({
  type: Type.Optional(
    Type.Enum(['session', 'personal'], { description: 'Default: session, or personal for end users.' }),
  ),
  name: Type.Optional(nameSchema()),
  expires_in_days: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: personalTokenDays.max,
      description: `For personal tokens. Default ${personalTokenDays.default}.`,
    }),
  ),
  scopes: Type.Optional(Type.String({ maxLength: 1000, description: 'Only full_access is supported.' })),
});

export const personalTokenSchema = Type.Object(
  {
    id: Type.String({ description: 'tok_…' }),
    name: optionalText,
    created_at: Type.String(),
    expires_at: optionalText,
    last_used_at: Type.Optional(Type.String({ description: 'Accurate to a few seconds.' })),
    revoked_at: optionalText,
  },
  { $id: 'PersonalToken', description: 'A long-lived token of a user, without its value.' },
);
