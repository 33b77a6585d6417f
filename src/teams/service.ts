import type { Static } from 'typebox';
import type { Database } from '../db/database.ts';
import { deleteOwner } from '../deletions/service.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Ledger } from '../ledger/seal.ts';
import { AppError, found } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { findNamedOwners } from '../tenancy/references.ts';
import { getTeam, requireManages } from './manage.ts';
import { createMembers } from './members.ts';
import type { teamCreateSchema, teamUpdateSchema } from './schema.ts';
import * as store from './store.ts';

export type TeamService = ReturnType<typeof createTeamService>;

export function createTeamService({ db, ledger }: { db: Database; ledger: Ledger }) {
  return {
    ...createMembers(db),
    get: (caller: Caller, id: string) => getTeam(db, caller, id),

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
      const team = await getTeam(db, caller, id);
      requireManages(caller, team);
      return found(await store.updateTeam(db, caller, team.id, input));
    },

    async remove(caller: Caller, id: string): Promise<void> {
      const team = await getTeam(db, caller, id);
      requireManages(caller, team);
      await ledger.noteDeletion(caller, { kind: 'team', id: team.id });
      await deleteOwner(db, caller, 'team', team.id);
    },
  };
}
