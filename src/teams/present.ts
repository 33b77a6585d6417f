import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import type { MembershipRow, TeamRow } from './store.ts';

export function presentTeam(row: TeamRow & { joined?: boolean }, caller: Caller) {
  return compact({
    id: formatId('team', row.id),
    app: formatId('app', row.appId),
    name: row.name,
    description: row.description,
    org: row.orgId && formatId('org', row.orgId),
    membership_status: membershipStatus(row, caller),
    metadata: row.metadata,
    sandbox: presentSandboxId(row.sandboxId),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}

export function presentMembership(row: MembershipRow) {
  return compact({
    id: formatId('membership', row.id),
    team: { id: formatId('team', row.teamId) },
    type: row.userId ? 'user' : 'agent',
    user: row.userId && compact({ id: formatId('user', row.userId), email: row.userEmail, name: row.userName }),
    agent:
      row.agentId &&
      compact({ id: formatId('agent', row.agentId), name: row.agentName, lookup_key: row.agentLookupKey }),
    name: row.userName ?? row.userEmail ?? row.agentName,
    role: row.role,
    joined_at: iso(row.createdAt),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}

function membershipStatus(row: TeamRow & { joined?: boolean }, caller: Caller): string | null {
  if (caller.kind !== 'user') return null;
  return row.joined || caller.teams.has(row.id) ? 'joined' : 'not_joined';
}
