import type { Db } from '../../db/database.ts';
import { maySee } from '../../events/store.ts';
import { loadOwnerCaller } from '../../tenancy/callers.ts';
import type { Owned } from '../../tenancy/visible.ts';
import type { FullAutomation } from '../definitions/store.ts';
import { type EventRow, listListeners } from './store.ts';

/**
 * The automations that receive an event. Runs hand on what an event says, to the identity that they act as and to the
 * readers of the runs, who are the owner of the automation. So the identity must be able to see what the event is about,
 * and no document of it may be hidden from the owner.
 * @param only the id of the only automation to return
 */
export async function listReceivers(db: Db, event: EventRow, only?: string): Promise<FullAutomation[]> {
  const listeners = await listListeners(db, event, only);
  // Automations may tell people what others are asked: that is how links to approvals are sent.
  if (event.subjectId === null || event.subjectKind === 'approval') return listeners;
  const known = new Map<string, Promise<boolean>>();
  const once = (kind: 'owner' | 'identity', who: Owned) => {
    const key = `${kind} ${who.orgId} ${who.teamId} ${who.userId} ${who.agentId}`;
    const found = known.get(key) ?? admits(db, event, kind, who);
    known.set(key, found);
    return found;
  };
  const received: FullAutomation[] = [];
  for (const automation of listeners) {
    const { orgId, teamId, userId, agentId, runAsUserId, runAsAgentId } = automation;
    const identity = { orgId: null, teamId: null, userId: runAsUserId, agentId: runAsAgentId };
    if (await once('owner', { orgId, teamId, userId, agentId }))
      if (await once('identity', identity)) received.push(automation);
  }
  return received;
}

/** Whether the event is for this owner or identity. Without one, the automation belongs to the app or acts as the app. */
async function admits(db: Db, event: EventRow, kind: 'owner' | 'identity', who: Owned): Promise<boolean> {
  if (Object.values(who).every((id) => id === null)) return true;
  const { appId, sandboxId } = event;
  const caller = await loadOwnerCaller(db, { ...who, appId, sandboxId });
  return caller !== undefined && (await maySee(db, caller, event.id, kind === 'owner' ? 'documents' : 'resource'));
}
