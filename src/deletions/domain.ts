import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import { continueDeletion, type DeletedOwner } from './service.ts';

/*
 * Deleting an org, a user, an agent, a team, a source or an automation deletes everything that belongs to it, which may be
 * millions of rows.
 * - `contents.ts` says what belongs to an owner, `batches.ts` deletes it; sandboxes are purged in the same way.
 * - `service.ts` deletes an owner within a request, and with a job if the request is killed.
 */

export function createDeletions({ db }: { db: Database }): Domain {
  return {
    service: undefined,
    tasks: {
      [taskNames.deleteOwner]: (payload, { signal }) => continueDeletion(db, payload as DeletedOwner, signal),
    },
  };
}
