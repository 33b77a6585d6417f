import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import { createErasureService, type ErasureService } from './service.ts';
import type { EraseDeps } from './workflow.ts';

/*
 * Erasing a user, a document or a source, with proof.
 * - `service.ts` takes the order: it hides the subject and queues the work in one transaction.
 * - `workflow.ts` deletes in batches: `of-user.ts` and `of-source.ts` list what; `db/tables.ts` says how each table is
 *   treated, which a test compares with the schema.
 * - `receivers.ts` finds who received it, `certificate.ts` states what was deleted and what remains where.
 * - `register.ts` keeps the orders outside backups; a restore repeats them.
 */

export function createErasures(deps: EraseDeps): Domain<ErasureService> {
  return {
    service: createErasureService(deps),
    tasks: {
      // Loaded when the first order arrives: few servers ever have one.
      [taskNames.erase]: async (payload, context) => {
        const { erase } = await import('./workflow.ts');
        return erase(deps, payload as { appId: string; erasureId: string }, context);
      },
    },
  };
}
