import type { Db } from '../../db/database.ts';
import { AppError } from '../../lib/errors.ts';
import { parseId } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { type KeyScope, requireScope, type ScopeNeed } from '../../tenancy/key-scopes.ts';
import { hasExpression } from '../engine/template.ts';
import { findKind } from '../nodes/index.ts';
import { isProgram, readGraph } from './graph.ts';
import * as store from './store.ts';

/*
 * What a key with scopes needs to write, change and activate a graph: the scopes for each node, as for the same requests
 * of its own. Without this, `automations` alone would reach everything, because nodes call services directly.
 */

/** What a node of this kind with these members needs in addition to `automations`. */
function needsOfNode(kind: string, members: Record<string, unknown>): ScopeNeed[] {
  const { needs, memberNeeds = {}, needsOf } = findKind(kind) ?? { needs: undefined };
  const named = Object.entries(memberNeeds).filter(([member]) => members[member] != null);
  const others = needsOf?.(members) ?? [];
  return [...(needs === undefined ? [] : [needs]), ...named.map(([, need]) => need), ...others];
}

/** Throws 403 unless the scopes of the keys that wrote the graph and invoked the run allow the node. */
export function requireNodeScopes(
  run: { graphScopes: readonly KeyScope[] | null; scopes: readonly KeyScope[] | null },
  kind: string,
  members: Record<string, unknown>,
): void {
  for (const need of needsOfNode(kind, members)) {
    requireScope(run.graphScopes ?? undefined, need, { holder: 'the key that wrote the workflow', what: 'this node' });
    requireScope(run.scopes ?? undefined, need, { holder: 'the key that invoked the run', what: 'this node' });
  }
}

type Written = Pick<store.FullAutomation, 'id' | 'runAsUserId' | 'runAsAgentId' | 'workflow'>;

/** The automations that one graph may reach by the names in its `run_automation` nodes, for a key with scopes. */
const reachedMax = 100;

/**
 * Throws 403 unless the caller has the scopes for an automation: for each node, for what it runs as, and for the automations
 * that it runs. A name that a template computes is checked by the run.
 */
export async function requireGraphScopes(db: Db, caller: Caller, automation: Written): Promise<void> {
  if (caller.scopes === undefined) return;
  const reached = new Map([[automation.id, automation]]);
  for (const { runAsUserId, runAsAgentId, workflow } of reached.values()) {
    // A caller that may act as a user could also create a token for that user.
    if (runAsUserId !== null || runAsAgentId !== null)
      requireScope(caller.scopes, { area: 'people', reads: false }, { what: 'run_as_user and run_as_agent' });
    if (workflow === null || workflow === undefined || isProgram(workflow)) continue;
    for (const node of readGraph(workflow).nodes.values()) {
      for (const need of needsOfNode(node.kind, node)) requireScope(caller.scopes, need, { what: `node "${node.id}"` });
      if (node.kind !== 'run_automation' || hasExpression(String(node.automation))) continue;
      const child = await findByName(db, caller, String(node.automation));
      if (child) reached.set(child.id, reached.get(child.id) ?? child);
      if (reached.size > reachedMax)
        throw new AppError('forbidden', `A key with scopes may run at most ${reachedMax} automations from one graph.`);
    }
  }
}

async function findByName(db: Db, caller: Caller, name: string): Promise<store.FullAutomation | undefined> {
  const id = parseId('automation', name);
  return (
    (id === undefined ? undefined : await store.findAutomation(db, caller, { id })) ??
    (await store.findAutomation(db, caller, { lookupKey: name }))
  );
}
