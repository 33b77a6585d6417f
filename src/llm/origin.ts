import { production } from '../db/database.ts';
import type { Scope } from '../tenancy/caller.ts';

/** For whom a model is called: its record and its budgets name them. All ids are UUIDs. */
export type CallOrigin = Scope & {
  userId?: string | null;
  agentId?: string | null;
  automationId?: string | null;
  runId?: string | null;
  nodeId?: string | null;
  extractionId?: string | null;
};

/** The origin of a call about which only its app is known. */
export function originOfApp(appId: string): CallOrigin {
  return { appId, sandboxId: production };
}
