import { appSchema } from '../apps/schema.ts';
import { ref, strict } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { passwordCharacters } from '../users/passwords.ts';
import { userSchema } from '../users/schema.ts';

/** An end user's e-mail and password in the app of the key, a developer token, or the code of a sign-in link. */
export const signInSchema = strict({
  publishable_key: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  email: Type.Optional(Type.String({ minLength: 1, maxLength: 254 })),
  password: Type.Optional(Type.String({ minLength: 1, maxLength: passwordCharacters.max })),
  developer_token: Type.Optional(Type.String({ minLength: 1, maxLength: 300 })),
  sign_in_code: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 300,
      description: 'From the link that the server prints when it starts, or that `quarry console` prints.',
    }),
  ),
});

export const consoleSessionSchema = Type.Object(
  {
    kind: Type.Enum(['user', 'developer']),
    csrf_token: Type.String({
      description: 'The CSRF token. Send it in `x-quarry-csrf` with every request of this session.',
    }),
    expires_at: Type.String(),
    user: Type.Optional(ref(userSchema)),
    app: Type.Optional(ref(appSchema)),
    developer: Type.Optional(Type.Object({ id: Type.String({ description: 'dva_…' }), name: Type.String() })),
  },
  { $id: 'ConsoleSession', description: 'A session of the web console.' },
);

export const signInLinkSchema = Type.Object(
  {
    url: Type.String({ description: 'The address to open in a browser. It works once.' }),
    expires_at: Type.String({ description: 'Until when it works: ten minutes.' }),
  },
  { $id: 'SignInLink', description: 'A link that signs a developer in to the web console once.' },
);
