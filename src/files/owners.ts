import type { Static } from 'typebox';
import type { Db } from '../db/database.ts';
import { invalidField } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import {
  findNamedOwners,
  type NamedOwners,
  type OwnerInput,
  requireCreateFor,
  unknownReference,
} from '../tenancy/references.ts';
import { type Change, type Grant, mayChangeOwned, type Owned } from '../tenancy/visible.ts';
import { type AclChange, applyAclChange, findNewPrincipals, readAclChange } from './acl.ts';
import type { aclInputSchema } from './schema.ts';
import { findVisiblePrincipals, type VisibleFileRow } from './store.ts';

/**
 * The owners of a new file, from the body. A team takes precedence over a user; without either, the calling user owns
 * the file. The org is the agent's, otherwise the one named, otherwise the caller's.
 */
export async function resolveFileOwner(db: Db, caller: Caller, input: OwnerInput): Promise<Owned> {
  const named = await findNamedOwners(db, caller, input);
  const self = caller.kind === 'user' ? caller.userId : null;
  const userId = named.team ? null : (named.user?.id ?? self);
  const agentId = named.agent?.id ?? (caller.kind === 'agent' && !named.team && !named.user ? caller.agentId : null);
  for (const owned of namedOwners(named)) requireCreateFor(caller, owned, named.agent);
  return { orgId: fileOrg(caller, named), teamId: named.team?.id ?? null, userId, agentId };
}

function fileOrg(caller: Caller, named: NamedOwners): string | null {
  if (named.agent) {
    if (named.org && named.org.id !== named.agent.orgId)
      throw invalidField('org', 'is not the organisation of the agent');
    return named.agent.orgId;
  }
  const callers = caller.kind === 'user' || caller.kind === 'agent' ? caller.orgId : undefined;
  return named.org?.id ?? callers ?? named.team?.orgId ?? named.user?.orgId ?? null;
}

/** Each individual owner alone, as if it were a row's only owner. */
function namedOwners(named: NamedOwners): Owned[] {
  const none: Owned = { orgId: null, teamId: null, userId: null, agentId: null };
  const owners: Owned[] = [];
  if (named.team) owners.push({ ...none, teamId: named.team.id });
  else if (named.user) owners.push({ ...none, userId: named.user.id });
  if (named.agent) owners.push({ ...none, agentId: named.agent.id });
  return owners;
}

/** Whether the caller has an owner's rights to this file. */
export function hasOwnerRights(caller: Caller, file: VisibleFileRow, change: Change): boolean {
  const { agentId: id, agentOrgId: orgId, agentTeamId: teamId, agentUserId: userId } = file;
  return mayChangeOwned(caller, file, change, id === null ? undefined : { id, orgId, teamId, userId });
}

/** The grants after a change. Throws 422 on a member that is invalid or names a principal not visible to the caller. */
export async function resolveGrants(
  db: Db,
  caller: Caller,
  before: readonly Grant[],
  input: Static<typeof aclInputSchema>,
): Promise<Grant[]> {
  const change = readAclChange(input);
  const after = applyAclChange(before, change);
  await requirePrincipals(db, caller, before, change);
  return after;
}

/** Throws 422 on a member that names a principal, new to the grants, that is not visible to the caller. */
export async function requirePrincipals(
  db: Db,
  caller: Caller,
  before: readonly Grant[],
  change: AclChange,
): Promise<void> {
  const named = findNewPrincipals(before, change);
  for (const type of ['user', 'team', 'org', 'agent', 'group'] as const) {
    const ofType = named.filter(({ principalType }) => principalType === type);
    if (ofType.length === 0) continue;
    const ids = ofType.map(({ principalId }) => principalId);
    const found = await findVisiblePrincipals(db, caller, type, ids);
    const missing = ofType.find(({ principalId }) => !found.has(principalId));
    if (missing) throw unknownReference(missing.field);
  }
}

/** Filters grants that were checked earlier: drops those whose principal was deleted or is no longer visible. */
export async function keepVisibleGrants(
  db: Db,
  caller: Caller,
  input: Static<typeof aclInputSchema>,
): Promise<Grant[]> {
  const change = readAclChange(input);
  const gone = new Set<string>();
  const named = findNewPrincipals([], change);
  for (const type of ['user', 'team', 'org', 'agent'] as const) {
    const ids = named.filter(({ principalType }) => principalType === type).map(({ principalId }) => principalId);
    const found = ids.length === 0 ? new Set() : await findVisiblePrincipals(db, caller, type, ids);
    for (const id of ids) if (!found.has(id)) gone.add(id);
  }
  return applyAclChange([], change).filter(({ principalId }) => !gone.has(principalId));
}
