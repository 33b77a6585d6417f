import { Type } from 'typebox';
import { bodyBudgets } from '../http/body-budgets.ts';
import { page, pageOf, pageQuery, pageRequest } from '../http/pages.ts';
import { registerResource } from '../http/resource.ts';
import { type Api, everyCaller, ref } from '../http/route.ts';
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
  const memberParams = Type.Object({ team: Type.String(), member: Type.String() });
  api.provisioning(everyCaller, {
    method: 'GET',
    path: '/teams/:team/members',
    operationId: 'listTeamMembers',
    tag,
    summary: 'List the members of a team',
    params,
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(membershipSchema)) },
    handler: async ({ caller, params: { team }, query }) => {
      const request = pageRequest(query);
      const [rows, total] = await teams.listMembers(caller, team, request);
      return page(request, rows.map(presentMembership), total);
    },
  });
  api.provisioning(everyCaller, {
    method: 'POST',
    path: '/teams/:team/members',
    operationId: 'addTeamMember',
    tag,
    summary: 'Add a user or an agent to a team',
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
    params,
    body: memberRemoveSchema,
    responses: { 204: null },
    handler: ({ caller, params: { team }, body }) => teams.removeNamedMember(caller, team, body),
  });
  api.provisioning(everyCaller, {
    method: 'GET',
    path: '/teams/:team/members/:member',
    operationId: 'getTeamMember',
    tag,
    summary: 'Get a member of a team',
    params: memberParams,
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
    params: memberParams,
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
    params: memberParams,
    responses: { 204: null },
    handler: ({ caller, params: { team, member } }) => teams.removeMember(caller, team, member),
  });
}
