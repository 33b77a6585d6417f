import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import { createOauthService, type OauthDeps, type OauthService } from './service.ts';
import { deleteEndedGrants } from './store.ts';

/*
 * The authorization server of the MCP endpoints, for assistants that sign users in by OAuth. Each address
 * /mcp/{publishable key} has an issuer of its own.
 * - `routes.ts` has the endpoints of the protocol, and the connected assistants; `protocol.ts` its errors and addresses.
 * - `clients.ts` finds out who asks; `service.ts` decides about requests, codes and tokens; `store.ts` keeps the grants.
 * - tenancy/mcp-tokens.ts creates access tokens, which tenancy/credentials.ts resolves to the user with fewer rights.
 */

/** Deletes what assistants may no longer use. */
const sweep = { task: taskNames.sweepAssistants, everySeconds: 3_600 };

export function createOauth(deps: OauthDeps): Domain<OauthService> {
  return {
    service: createOauthService(deps),
    tasks: { [sweep.task]: () => deleteEndedGrants(deps.db, deps.clock.now()) },
    recurring: [sweep],
  };
}
