import { type Db, nobody } from '../../db/database.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { loadAgentCaller, loadUserCaller } from '../../tenancy/callers.ts';
import { NodeFailure } from '../nodes/kind.ts';
import type { RunRow } from './store.ts';

/**
 * Loads the identity that a run acts as: its nodes may see and change exactly what that identity may. Its rights are
 * read each time a worker takes up the run. Throws NodeFailure if the user or agent was deleted.
 */
export async function loadRunCaller(db: Db, run: RunRow): Promise<Caller> {
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
