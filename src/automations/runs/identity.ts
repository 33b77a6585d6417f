import { type Db, nobody } from '../../db/database.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { loadAgentCaller, loadUserCaller } from '../../tenancy/callers.ts';
import { intersectScopes } from '../../tenancy/key-scopes.ts';
import { NodeFailure } from '../nodes/kind.ts';
import type { WorkRow } from './store.ts';

/**
 * Loads the identity that a run acts as: its nodes may see and change what that identity may, within the scopes of the
 * keys that wrote its graph and that invoked it. Its rights are read each time a worker takes up the run. Throws
 * NodeFailure if the user or agent was deleted.
 */
export async function loadRunCaller(db: Db, run: WorkRow): Promise<Caller> {
  const scopes = intersectScopes(run.graphScopes ?? undefined, run.scopes ?? undefined);
  return { ...(await loadIdentity(db, run)), ...(scopes === undefined ? {} : { scopes }) };
}

async function loadIdentity(db: Db, run: WorkRow): Promise<Caller> {
  const scope = { appId: run.appId, sandboxId: run.sandboxId };
  if (run.actsAsUserId !== null) {
    const user = await loadUserCaller(db, { ...scope, userId: run.actsAsUserId });
    if (!user) throw new NodeFailure('identity_gone', 'The user that this run acts as no longer exists.');
    return user;
  }
  if (run.actsAsAgentId !== null) {
    const agent = await loadAgentCaller(db, { ...scope, agentId: run.actsAsAgentId });
    if (!agent) throw new NodeFailure('identity_gone', 'The agent that this run acts as no longer exists.');
    return agent;
  }
  return { kind: 'server', keyId: nobody, ...scope };
}
