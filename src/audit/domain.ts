import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import type { Ledger } from '../ledger/seal.ts';
import type { Clock } from '../lib/clock.ts';
import type { AuditLog } from './log.ts';
import { type AuditService, createAuditService } from './service.ts';
import { auditSweepJob, sweepAudit } from './sweep.ts';

/*
 * Who changed what in an app, and which credentials are used. Each route names how its changes are recorded (`audit` in
 * http/route). `log.ts` writes the entry: for durable changes before the change begins, and with its outcome after the
 * response; others are written in batches soon after it.
 * - `failures.ts` counts failed attempts instead of writing an entry for each.
 * - `service.ts` and `routes.ts` list and export entries; `present.ts` shows one.
 * - `sweep.ts` deletes what is older than the retention.
 * - ledger/ seals the entries afterwards, so that a change to one is noticed.
 */

type AuditDeps = { db: Database; clock: Clock; audit: AuditLog | undefined; ledger: Ledger; daysKept: number };

export function createAudit(deps: AuditDeps): Domain<AuditService> {
  return {
    service: createAuditService(deps),
    tasks: { [auditSweepJob.task]: async () => void (await sweepAudit(deps)) },
    recurring: [auditSweepJob],
  };
}
