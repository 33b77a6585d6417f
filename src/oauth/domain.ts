import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import { createOauthService, type OauthDeps, type OauthService } from './service.ts';
import { deleteEndedGrants } from './store.ts';

/*
 * The authorization server of the MCP endpoints, for assistants that sign users in by OAuth. Each address
 * /mcp/{publishable key} has an issuer of its own.
 * - A client asks for a grant: `clients.ts` finds out who it is, `authorization.ts` reads the request (`pending.ts` keeps it
 *   in the address of the consent page) and records what the user decides, and the client gets a code.
 * - `exchange.ts` exchanges the code, and later each refresh token, for new tokens, and ends a grant whose token is used
 *   twice; `tokens.ts` has their texts.
 * - `place.ts` finds the app of an address; `protocol.ts` has errors and addresses, `scopes.ts` what may be granted.
 * - `routes.ts` has the endpoints of the protocol, and the connected assistants; `store.ts` keeps the grants.
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
