import type { Caller } from '../../src/tenancy/caller.ts';

/*
 * Who sees what, stated apart from src/tenancy: a caller is a set of holders, a row or a grant belongs to holders, and
 * a caller sees what belongs to one of theirs.
 */

type Owners = { orgId: string | null; teamId: string | null; userId: string | null };
export type Row = Owners & { agentId: string | null };
export type Agent = Owners & { id: string };
export type Grant = {
  principalType: 'user' | 'team' | 'org' | 'org_role' | 'agent' | 'everyone';
  principalId: string;
  principalRole: string;
  actions: readonly string[];
};

/** Undefined: the caller sees the whole app. */
function holdersOf(caller: Caller): Set<string> | undefined {
  if (caller.kind !== 'user' && caller.kind !== 'agent') return undefined;
  const self = caller.kind === 'user' ? `user ${caller.userId}` : `agent ${caller.agentId}`;
  const holders = new Set([self, ...[...caller.teams.keys()].map((team) => `team ${team}`)]);
  if (caller.orgId !== undefined) {
    holders.add(`org ${caller.orgId}`);
    if (caller.kind === 'user') holders.add(`${caller.orgRole} of ${caller.orgId}`);
  }
  return holders;
}

/** Its individual owners, or else its organisation. */
function ownersOf({ userId, teamId, agentId, orgId }: Row): string[] {
  const individuals = [
    ...(userId === null ? [] : [`user ${userId}`]),
    ...(teamId === null ? [] : [`team ${teamId}`]),
    ...(agentId === null ? [] : [`agent ${agentId}`]),
  ];
  return individuals.length === 0 && orgId !== null ? [`org ${orgId}`] : individuals;
}

/** @param agent the agent that owns the row, if one does */
export function sees(caller: Caller, row: Row, agent?: Agent): boolean {
  const holders = holdersOf(caller);
  if (holders === undefined || ownersOf(row).some((owner) => holders.has(owner))) return true;
  return agent !== undefined && seesAgent(caller, agent);
}

export function seesAgent(caller: Caller, agent: Agent): boolean {
  return holdersOf(caller)?.has(`agent ${agent.id}`) || sees(caller, { ...agent, agentId: null });
}

export function isGranted(
  caller: Caller,
  action: 'read' | 'write',
  grants: readonly Grant[],
  orgOfFile: string | null,
) {
  const holders = holdersOf(caller);
  const given = grants.filter(({ actions }) => actions.includes('write') || actions.includes(action));
  return (
    holders === undefined ||
    given.some(({ principalType, principalId, principalRole }) => {
      if (principalType === 'everyone') return true;
      return holders.has(
        principalType === 'org_role' ? `${principalRole} of ${orgOfFile}` : `${principalType} ${principalId}`,
      );
    })
  );
}
