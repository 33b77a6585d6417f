import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { createLedger, type Ledger } from './seal.ts';

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
