import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { createLedger, type Ledger } from './seal.ts';

/*
 * Tamper evidence for the audit log and the journals of runs.
 * - Records are written by their domains. `seal.ts` later digests what is committed, and `append.ts` adds it to the ledger
 *   as a signed segment, so no writer waits for another.
 * - `encoding.ts` has the bytes that are digested, `keys.ts` the keys that sign, `head.ts` the head that an operator exports.
 * - `note-removals.ts` states what is deleted on purpose; `removals.ts` looks such statements up.
 * - `verify.ts` repeats the digests and reports `findings.ts`; `journals.ts` does so for one run.
 * - `service.ts` and `routes.ts` offer heads and verification over the API; `quarry verify` uses the same code.
 */

/** How often committed records are sealed. */
const sealing = { task: taskNames.sealLedger, everySeconds: 15 };

export function createLedgers(deps: { db: Database; secrets: Secrets; clock: Clock }): Domain<Ledger> {
  const ledger = createLedger(deps);
  return {
    service: ledger,
    tasks: { [sealing.task]: () => ledger.sealAll() },
    recurring: [sealing],
  };
}
