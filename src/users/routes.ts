import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller, operators } from '../http/route/access.ts';
import { registerResource } from '../http/route/resource.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { presentUser } from './present.ts';
import { userCreateSchema, userSchema, userUpdateSchema } from './schema.ts';
import type { UserService } from './service.ts';

const tag = 'Users';

export function registerUserRoutes(api: Api, { users }: { users: UserService }): void {
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/users/me',
    operationId: 'getMe',
    tag,
    summary: 'Get the calling user',
    description: 'The same as `GET /api/v1/users/{user}` with the caller’s own id. 404 for callers that are not users.',
    responses: { 200: ref(userSchema) },
    handler: async ({ caller }) => presentUser(await users.get(caller, 'me')),
  });
  api.provisioning(everyCaller, {
    method: 'POST',
    path: '/users/:user/sessions/revoke',
    operationId: 'revokeUserSessions',
    tag,
    summary: 'End every session and token of a user',
    description:
      'Access, refresh and personal tokens and console sessions end in every process within two seconds. End users can only end their own.',
    params: Type.Object({ user: Type.String() }),
    responses: { 204: null },
    handler: ({ caller, params }) => users.endSessions(caller, params.user),
  });
  registerResource(api, {
    path: '/users',
    param: 'user',
    ids: ['User', 'Users'],
    words: ['a user', 'users'],
    tag,
    about: {
      create:
        '422 if the e-mail address is taken in the app or sandbox. Without a password the user cannot sign in, but tokens can be created for them.',
      list: 'Newest first. `search` is part of the name or e-mail address.',
      get: '`me` is the calling user. End users also see the other users of their organisation and teams.',
      update:
        'Omitted members keep their values; `metadata` is replaced as a whole. A new password ends every session and personal token. 422 if the e-mail address is taken.',
      remove:
        'Permanent: the user’s sessions, tokens and everything they own are deleted. What belongs to teams and organisations stays.',
    },
    schema: userSchema,
    present: presentUser,
    create: { callers: operators, body: userCreateSchema, budget: bodyBudgets.map, run: users.create },
    list: {
      callers: operators,
      query: Type.Object({ search: Type.Optional(Type.String()), org: Type.Optional(Type.String()) }),
      run: async (caller, request, query) => users.list(caller, request, query),
    },
    get: { callers: everyCaller, run: users.get },
    update: { callers: operators, body: userUpdateSchema, budget: bodyBudgets.map, run: users.update },
    remove: { callers: operators, run: users.remove },
  });
}
