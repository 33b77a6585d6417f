import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import { type ConsoleDeps, type ConsoleService, createConsoleService } from './service.ts';
import { deleteExpiredSessions } from './store.ts';

/*
 * What the web console needs in addition to the public API: its built files, sessions in a cookie, and sign-in.
 * - `static.ts` serves console/dist; the application itself is in console/ and calls the API like any client.
 * - `sign-in-links.ts` creates the links that `quarry serve` and `quarry console` print.
 * - `routes.ts` exchanges a credential or code for a session; `external-routes.ts` signs in with an app's own issuer.
 * - `store.ts` keeps the sessions, which tenancy/sessions.ts resolves to callers.
 */

/** Deletes expired sessions. */
const sweep = { task: taskNames.sweepConsole, everySeconds: 3_600 };

export function createConsole(deps: ConsoleDeps): Domain<ConsoleService> {
  return {
    service: createConsoleService(deps),
    tasks: { [sweep.task]: () => deleteExpiredSessions(deps.db, deps.clock.now()) },
    recurring: [sweep],
  };
}
