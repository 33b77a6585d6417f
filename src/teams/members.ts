import type { Static } from 'typebox';
import { type Database, isUniqueViolation } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { newUuid, parseId } from '../lib/ids.ts';
import type { Caller, TeamRole } from '../tenancy/caller.ts';
import { findNamedOwners } from '../tenancy/references.ts';
import { getTeam, requireManages } from './manage.ts';
import type { memberCreateSchema, memberRemoveSchema } from './schema.ts';
import * as store from './store.ts';

/** The users and agents of teams. */
export function createMembers(db: Database) {
  return {
    async listMembers(caller: Caller, teamId: string, page: PageRequest) {
      const team = await getTeam(db, caller, teamId);
      return store.listMemberships(db, caller.appId, team.id, page);
    },

    async addMember(
      caller: Caller,
      teamId: string,
      input: Static<typeof memberCreateSchema>,
    ): Promise<store.MembershipRow> {
      const team = await getTeam(db, caller, teamId);
      requireManages(caller, team, input.role);
      const field = requireOneMember(input);
      const named = await findNamedOwners(db, caller, { user: input.user, agent: input.agent });
      const id = newUuid();
      const member = {
        id,
        teamId: team.id,
        userId: named.user?.id ?? null,
        agentId: named.agent?.id ?? null,
        role: input.role ?? 'member',
      };
      try {
        await store.insertMembership(db, caller.appId, member);
      } catch (error) {
        if (!isUniqueViolation(error, `team_memberships_${field}`)) throw error;
        throw new AppError('already_exists', `This ${field} is already a member of the team.`, {
          fields: [{ field, message: 'is already a member' }],
        });
      }
      return found(await store.findMembership(db, caller.appId, team.id, id));
    },

    async getMember(caller: Caller, teamId: string, member: string): Promise<store.MembershipRow> {
      return getMembership(db, caller, await getTeam(db, caller, teamId), member);
    },

    async updateMember(caller: Caller, teamId: string, member: string, role: TeamRole): Promise<store.MembershipRow> {
      const team = await getTeam(db, caller, teamId);
      const row = await getMembership(db, caller, team, member);
      requireManages(caller, team, row.role);
      requireManages(caller, team, role);
      await store.updateMembership(db, caller.appId, row.id, role);
      return { ...row, role };
    },

    async removeMember(caller: Caller, teamId: string, member: string): Promise<void> {
      const team = await getTeam(db, caller, teamId);
      await removeMembership(db, caller, team, await getMembership(db, caller, team, member));
    },

    /** Like `removeMember`, for clients that send the member in the body. */
    async removeNamedMember(caller: Caller, teamId: string, input: Static<typeof memberRemoveSchema>): Promise<void> {
      const team = await getTeam(db, caller, teamId);
      const field = requireOneMember(input);
      const member = input.user ?? input.agent ?? '';
      if (parseId(field, member) === undefined) throw invalidField(field, 'is not an id of the right type');
      await removeMembership(db, caller, team, await getMembership(db, caller, team, member));
    },
  };
}

async function getMembership(
  db: Database,
  caller: Caller,
  team: store.TeamRow,
  member: string,
): Promise<store.MembershipRow> {
  const id = parseId('membership', member) ?? parseId('user', member) ?? parseId('agent', member);
  return found(id === undefined ? undefined : await store.findMembership(db, caller.appId, team.id, id));
}

async function removeMembership(
  db: Database,
  caller: Caller,
  team: store.TeamRow,
  member: store.MembershipRow,
): Promise<void> {
  const leaving = caller.kind === 'user' && member.userId === caller.userId;
  if (!leaving) requireManages(caller, team, member.role);
  await store.deleteMembership(db, caller.appId, member.id);
}

function requireOneMember(input: Static<typeof memberRemoveSchema>): 'user' | 'agent' {
  if ((input.user === undefined) === (input.agent === undefined))
    throw invalidField(input.user === undefined ? 'user' : 'agent', 'give exactly one of user and agent');
  return input.user === undefined ? 'agent' : 'user';
}
