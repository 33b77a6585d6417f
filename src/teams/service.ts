import type { Static } from 'typebox';
import { type Database, isUniqueViolation } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Ledger } from '../ledger/seal.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { newUuid, parseId } from '../lib/ids.ts';
import { type Caller, canSeeWholeApp, type TeamRole } from '../tenancy/caller.ts';
import { findNamedOwners, pathId } from '../tenancy/references.ts';
import type { memberCreateSchema, memberRemoveSchema, teamCreateSchema, teamUpdateSchema } from './schema.ts';
import * as store from './store.ts';

export type TeamService = ReturnType<typeof createTeamService>;

export function createTeamService({ db, ledger }: { db: Database; ledger: Ledger }) {
  async function get(caller: Caller, id: string): Promise<store.TeamRow> {
    return found(await store.findTeam(db, caller, pathId('team', id)));
  }

  async function getMembership(caller: Caller, team: store.TeamRow, member: string): Promise<store.MembershipRow> {
    const id = parseId('membership', member) ?? parseId('user', member) ?? parseId('agent', member);
    return found(id === undefined ? undefined : await store.findMembership(db, caller.appId, team.id, id));
  }

  async function removeMembership(caller: Caller, team: store.TeamRow, member: store.MembershipRow): Promise<void> {
    const leaving = caller.kind === 'user' && member.userId === caller.userId;
    if (!leaving) requireManages(caller, team, member.role);
    await store.deleteMembership(db, caller.appId, member.id);
  }

  return {
    get,

    /** A user who creates a team becomes its owner. */
    async create(caller: Caller, input: Static<typeof teamCreateSchema>): Promise<store.TeamRow & { joined: boolean }> {
      const { org } = await findNamedOwners(db, caller, { org: input.org });
      const orgId = org?.id ?? (caller.kind === 'user' ? (caller.orgId ?? null) : null);
      if (caller.kind === 'user' && caller.orgRole === 'viewer')
        throw new AppError('forbidden', 'Viewers of an organisation cannot create teams.');
      const team = {
        id: newUuid(),
        name: input.name,
        description: input.description ?? null,
        orgId,
        metadata: input.metadata ?? {},
      };
      return db.begin(async (tx) => {
        const row = await store.insertTeam(tx, caller, team);
        if (caller.kind === 'user') {
          const owner = { id: newUuid(), teamId: row.id, userId: caller.userId, agentId: null, role: 'owner' as const };
          await store.insertMembership(tx, caller.appId, owner);
        }
        return { ...row, joined: caller.kind === 'user' };
      });
    },

    list(caller: Caller, page: PageRequest, query: { search?: string | undefined; membership?: string | undefined }) {
      return store.listTeams(db, caller, page, { search: query.search, joinedOnly: query.membership === 'joined' });
    },

    async update(caller: Caller, id: string, input: Static<typeof teamUpdateSchema>): Promise<store.TeamRow> {
      const team = await get(caller, id);
      requireManages(caller, team);
      return found(await store.updateTeam(db, caller, team.id, input));
    },

    async remove(caller: Caller, id: string): Promise<void> {
      const team = await get(caller, id);
      requireManages(caller, team);
      await ledger.noteDeletion(caller, { kind: 'team', id: team.id });
      await store.deleteTeam(db, caller, team.id);
    },

    async listMembers(caller: Caller, teamId: string, page: PageRequest) {
      const team = await get(caller, teamId);
      return store.listMemberships(db, caller.appId, team.id, page);
    },

    async addMember(
      caller: Caller,
      teamId: string,
      input: Static<typeof memberCreateSchema>,
    ): Promise<store.MembershipRow> {
      const team = await get(caller, teamId);
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
      return getMembership(caller, await get(caller, teamId), member);
    },

    async updateMember(caller: Caller, teamId: string, member: string, role: TeamRole): Promise<store.MembershipRow> {
      const team = await get(caller, teamId);
      const row = await getMembership(caller, team, member);
      requireManages(caller, team, row.role);
      requireManages(caller, team, role);
      await store.updateMembership(db, caller.appId, row.id, role);
      return { ...row, role };
    },

    async removeMember(caller: Caller, teamId: string, member: string): Promise<void> {
      const team = await get(caller, teamId);
      await removeMembership(caller, team, await getMembership(caller, team, member));
    },

    /** Like `removeMember`, for clients that send the member in the body. */
    async removeNamedMember(caller: Caller, teamId: string, input: Static<typeof memberRemoveSchema>): Promise<void> {
      const team = await get(caller, teamId);
      const field = requireOneMember(input);
      const member = input.user ?? input.agent ?? '';
      if (parseId(field, member) === undefined) throw invalidField(field, 'is not an id of the right type');
      await removeMembership(caller, team, await getMembership(caller, team, member));
    },
  };
}

/**
 * Owners and admins of the team and admins of its organisation may manage it. Other members can see it, so they get 403.
 * `memberRole` is the role to grant or remove: an admin of the team can neither add nor change an owner.
 */
function requireManages(caller: Caller, team: store.TeamRow, memberRole?: TeamRole): void {
  if (canSeeWholeApp(caller)) return;
  const role = caller.teams.get(team.id);
  const orgAdmin =
    caller.kind === 'user' && caller.orgRole === 'admin' && team.orgId !== null && caller.orgId === team.orgId;
  if (role === 'owner' || orgAdmin) return;
  if (role !== 'admin') throw new AppError('forbidden', 'Only owners and admins of the team may do that.');
  if (memberRole === 'owner') throw new AppError('forbidden', 'Only owners of the team may add or change an owner.');
}

function requireOneMember(input: Static<typeof memberRemoveSchema>): 'user' | 'agent' {
  if ((input.user === undefined) === (input.agent === undefined))
    throw invalidField(input.user === undefined ? 'user' : 'agent', 'give exactly one of user and agent');
  return input.user === undefined ? 'agent' : 'user';
}
