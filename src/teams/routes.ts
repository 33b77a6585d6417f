import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { registerResource } from '../http/route/resource.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { presentMembership, presentTeam } from './present.ts';
import {
  memberCreateSchema,
  memberRemoveSchema,
  membershipSchema,
  memberUpdateSchema,
  teamCreateSchema,
  teamSchema,
  teamUpdateSchema,
} from './schema.ts';
import type { TeamService } from './service.ts';

const tag = 'Teams';

export function registerTeamRoutes(api: Api, { teams }: { teams: TeamService }): void {
  registerResource(api, {
    path: '/teams',
    param: 'team',
    ids: ['Team', 'Teams'],
    words: ['a team', 'teams'],
    tag,
    about: {
      create:
        'A user who creates a team becomes its owner; viewers of an organisation may not (403). Without `org` the team belongs to the user’s own organisation.',
      list: 'Newest first. End users see their own teams, and admins of an organisation all of its teams.',
      get: '404 for end users who are neither members nor admins of its organisation.',
      update:
        'Omitted members keep their values. Requires an owner or admin of the team, or an admin of its organisation; other members get 403.',
      remove:
        'Permanent: everything that the team owns is deleted with it. Requires an owner or admin of the team, or an admin of its organisation.',
    },
    schema: teamSchema,
    present: presentTeam,
    create: { callers: everyCaller, body: teamCreateSchema, budget: bodyBudgets.map, run: teams.create },
    list: {
      callers: everyCaller,
      query: Type.Object({
        search: Type.Optional(Type.String({ description: 'Part of the name or the description.' })),
        membership: Type.Optional(Type.Enum(['joined', 'joinable'])),
      }),
      run: teams.list,
    },
    get: { callers: everyCaller, run: teams.get },
    update: { callers: everyCaller, body: teamUpdateSchema, budget: bodyBudgets.map, run: teams.update },
    remove: { callers: everyCaller, run: teams.remove },
  });
  registerMemberRoutes(api, teams);
}

function registerMemberRoutes(api: Api, teams: TeamService): void {
  const params = Type.Object({ team: Type.String() });
  api.provisioning(everyCaller, {
    method: 'GET',
    path: '/teams/:team/members',
    operationId: 'listTeamMembers',
    tag,
    summary: 'List the members of a team',
    description: 'Users and agents of a team, newest first. 404 for a team that is not visible to the caller.',
    params,
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(membershipSchema)) },
    handler: ({ caller, params: { team }, query }) =>
      readPage(query, (request) => teams.listMembers(caller, team, request), presentMembership),
  });
  api.provisioning(everyCaller, {
    method: 'POST',
    path: '/teams/:team/members',
    operationId: 'addTeamMember',
    tag,
    summary: 'Add a user or an agent to a team',
    description:
      'Give exactly one of `user` and `agent`. Requires an owner or admin of the team, or an admin of its organisation; only owners and organisation admins may add an owner. 422 if it is already a member.',
    params,
    body: memberCreateSchema,
    responses: { 201: ref(membershipSchema) },
    handler: async ({ caller, params: { team }, body }) => presentMembership(await teams.addMember(caller, team, body)),
  });
  api.provisioning(everyCaller, {
    method: 'DELETE',
    path: '/teams/:team/members',
    operationId: 'removeNamedTeamMember',
    tag,
    summary: 'Remove the member named in the body',
    description:
      'The same as the operation with the member in the path, for clients that send it in the body: exactly one of `user` and `agent`. Users may remove themselves.',
    params,
    body: memberRemoveSchema,
    responses: { 204: null },
    handler: ({ caller, params: { team }, body }) => teams.removeNamedMember(caller, team, body),
  });

  registerOneMember(api, teams);
}

function registerOneMember(api: Api, teams: TeamService): void {
  const params = Type.Object({ team: Type.String(), member: Type.String() });
  api.provisioning(everyCaller, {
    method: 'GET',
    path: '/teams/:team/members/:member',
    operationId: 'getTeamMember',
    tag,
    summary: 'Get a member of a team',
    description: 'The member is named by the id of the membership (`tmb_…`), the user or the agent.',
    params,
    responses: { 200: ref(membershipSchema) },
    handler: async ({ caller, params: { team, member } }) =>
      presentMembership(await teams.getMember(caller, team, member)),
  });
  api.provisioning(everyCaller, {
    method: 'PATCH',
    path: '/teams/:team/members/:member',
    operationId: 'updateTeamMember',
    tag,
    summary: "Change a member's role",
    description:
      'Requires an owner or admin of the team, or an admin of its organisation. Only owners and organisation admins may grant or remove the role `owner`.',
    params,
    body: memberUpdateSchema,
    responses: { 200: ref(membershipSchema) },
    handler: async ({ caller, params: { team, member }, body }) =>
      presentMembership(await teams.updateMember(caller, team, member, body.role)),
  });
  api.provisioning(everyCaller, {
    method: 'DELETE',
    path: '/teams/:team/members/:member',
    operationId: 'removeTeamMember',
    tag,
    summary: 'Remove a member from a team',
    description:
      'The member is named by the id of the membership, the user or the agent. Users may remove themselves; removing others requires the same role as adding them.',
    params,
    responses: { 204: null },
    handler: ({ caller, params: { team, member } }) => teams.removeMember(caller, team, member),
  });
}
