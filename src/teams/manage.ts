import type { Db } from '../db/database.ts';
import { AppError, found } from '../lib/errors.ts';
import { type Caller, canSeeWholeApp, type TeamRole } from '../tenancy/caller.ts';
import { pathId } from '../tenancy/references.ts';
import { findTeam, type TeamRow } from './store.ts';

export async function getTeam(db: Db, caller: Caller, id: string): Promise<TeamRow> {
  return found(await findTeam(db, caller, pathId('team', id)));
}

/**
 * Owners and admins of the team and admins of its organisation may manage it. Other members can see it, so they get 403.
 * `memberRole` is the role to grant or remove: an admin of the team can neither add nor change an owner.
 */
export function requireManages(caller: Caller, team: TeamRow, memberRole?: TeamRole): void {
  if (canSeeWholeApp(caller)) return;
  const role = caller.teams.get(team.id);
  const orgAdmin =
    caller.kind === 'user' && caller.orgRole === 'admin' && team.orgId !== null && caller.orgId === team.orgId;
  if (role === 'owner' || orgAdmin) return;
  if (role !== 'admin') throw new AppError('forbidden', 'Only owners and admins of the team may do that.');
  if (memberRole === 'owner') throw new AppError('forbidden', 'Only owners of the team may add or change an owner.');
}
