import { type Db, nobody } from '../../db/database.ts';
import type { AgentCaller, Caller, Scope, TeamRole } from '../../tenancy/caller.ts';
import { loadUserCaller } from '../../tenancy/credentials.ts';
import { NodeFailure } from '../nodes/kind.ts';
import type { RunRow } from './store.ts';

/**
 * The identity that a run acts as: its nodes see and change exactly what that one may. Rights are read anew each time
 * a run is taken up. Throws NodeFailure when the user or agent is gone.
 */
export async function runCaller(db: Db, run: RunRow): Promise<Caller> {
  const scope = { appId: run.appId, sandboxId: run.sandboxId };
  if (run.actsAsUserId !== null) {
    const user = await loadUserCaller(db, { ...scope, userId: run.actsAsUserId });
    if (!user) throw new NodeFailure('identity_gone', 'The user that this run acts as does not exist any more.');
    return user;
  }
  if (run.actsAsAgentId !== null) {
    const agent = await loadAgentCaller(db, scope, run.actsAsAgentId);
    if (!agent) throw new NodeFailure('identity_gone', 'The agent that this run acts as does not exist any more.');
    return agent;
  }
  return { kind: 'server', keyId: nobody, ...scope };
}

async function loadAgentCaller(db: Db, scope: Scope, agentId: string): Promise<AgentCaller | undefined> {
  const [row] = await db<{ orgId: string | null; teamId: string | null; teams: Record<string, TeamRole> | null }[]>`
    select a.org_id, a.team_id,
      (select jsonb_object_agg(m.team_id, m.role) from team_memberships m
        where m.app_id = a.app_id and m.agent_id = a.id) as teams
    from agents a where a.app_id = ${scope.appId} and a.sandbox_id = ${scope.sandboxId} and a.id = ${agentId}`;
  if (!row) return undefined;
  const teams = new Map(Object.entries(row.teams ?? {}));
  if (row.teamId !== null) teams.set(row.teamId, 'owner');
  return { kind: 'agent', ...scope, agentId, orgId: row.orgId ?? undefined, teams };
}
