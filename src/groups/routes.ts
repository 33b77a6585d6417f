import { bodyBudgets } from '../http/body/budgets.ts';
import { operators } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { registerResource } from '../http/route/resource.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { presentGroup, presentGroupMember } from './present.ts';
import * as schema from './schema.ts';
import type { GroupService } from './service.ts';

const tag = 'Groups';

export function registerGroupRoutes(api: Api, { groups }: { groups: GroupService }): void {
  registerResource(api, {
    path: '/groups',
    param: 'group',
    ids: ['Group', 'Groups'],
    words: ['a group of users', 'groups of users'],
    tag,
    about: {
      create:
        'Documents can be restricted to its members. 422 if the namespace already has a group with this name. The groups of tokens and connectors are created automatically.',
      list: 'Newest first, without their members.',
      get: 'Without its members.',
      update: 'Changes or, with null, removes the name that people read.',
      remove: 'Permanent. Grants to the group no longer allow anything.',
    },
    schema: schema.groupSchema,
    present: presentGroup,
    create: { callers: operators, body: schema.groupCreateSchema, run: groups.create },
    list: { callers: operators, query: schema.groupListSchema, run: groups.list },
    get: { callers: operators, run: groups.get },
    update: { callers: operators, body: schema.groupUpdateSchema, run: groups.update },
    remove: { callers: operators, run: groups.remove },
  });
  registerMemberRoutes(api, groups);
}

function registerMemberRoutes(api: Api, groups: GroupService): void {
  const params = Type.Object({ group: Type.String() });
  api.provisioning(operators, {
    method: 'GET',
    path: '/groups/:group/members',
    operationId: 'listGroupMembers',
    tag,
    summary: 'List the members of a group',
    description: 'The users in the group, those who were added last first.',
    params,
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(schema.groupMemberSchema)) },
    handler: ({ caller, params: { group }, query }) =>
      readPage(query, (request) => groups.listMembers(caller, group, request), presentGroupMember),
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/groups/:group/members',
    operationId: 'addGroupMember',
    tag,
    summary: 'Add a user to a group',
    description: 'Effective for the next request of the user. 422 if the user is already a member.',
    params,
    body: schema.groupMemberAddSchema,
    responses: { 201: ref(schema.groupMemberSchema) },
    handler: async ({ caller, params: { group }, body }) =>
      presentGroupMember(await groups.addMember(caller, group, body.user)),
  });
  api.provisioning(operators, {
    method: 'PUT',
    path: '/groups/:group/members',
    operationId: 'setGroupMembers',
    tag,
    summary: 'Replace the members of a group',
    description: 'Effective for the next request of each user. Nothing changes if one of them does not exist (422).',
    params,
    body: schema.groupMembersSchema,
    budget: bodyBudgets.map,
    responses: { 204: null },
    handler: ({ caller, params: { group }, body }) => groups.setMembers(caller, group, body),
  });
  api.provisioning(operators, {
    method: 'DELETE',
    path: '/groups/:group/members/:user',
    operationId: 'removeGroupMember',
    tag,
    summary: 'Remove a user from a group',
    description: 'Effective for the next request of the user. 404 if the user is not a member.',
    params: Type.Object({ group: Type.String(), user: Type.String() }),
    responses: { 204: null },
    handler: ({ caller, params: { group, user } }) => groups.removeMember(caller, group, user),
  });
}
