import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import type { Ledger } from '../ledger/seal.ts';
import type { AuditLog } from './log.ts';
import { type AuditService, createAuditService } from './service.ts';
import { auditSweepJob, createAuditSweepTask } from './sweep.ts';

type AuditDeps = { db: Database; clock: Clock; audit: AuditLog | undefined; ledger: Ledger; daysKept: number };

export function createAudit(deps: AuditDeps): Domain<AuditService> {
  return {
    service: createAuditService(deps),
    tasks: { [auditSweepJob.task]: createAuditSweepTask(deps) },
    recurring: [auditSweepJob],
  };
}
