import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import { purgeSandboxes } from './purge.ts';
import { type AppDeps, type AppService, createAppService } from './service.ts';

/*
 * Apps with their sandboxes and keys.
 * - `service.ts`, `sandboxes.ts` and `keys.ts` decide, `store.ts` has their SQL.
 * - `purge.ts` deletes what deleted sandboxes have left. `bootstrap.ts` creates the first app.
 */

const purge = { task: taskNames.purgeSandboxes, everySeconds: 60 };

export function createApps(deps: AppDeps): Domain<AppService> {
  return {
    service: createAppService(deps),
    tasks: { [purge.task]: (_payload, { signal }) => purgeSandboxes(deps.db, signal) },
    recurring: [purge],
  };
}
