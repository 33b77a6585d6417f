import { createAudit } from '../../audit/domain.ts';
import type { AuditLog } from '../../audit/log.ts';
import { createDeletions } from '../../deletions/domain.ts';
import type { Domain } from '../../domain.ts';
import { createErasures } from '../../erasures/domain.ts';
import { openRegister, registerDirectory } from '../../erasures/register.ts';
import { createIdempotencySweep } from '../../idempotency/sweep.ts';
import type { Knowledge } from '../../knowledge/domain.ts';
import type { Ledger } from '../../ledger/seal.ts';
import { createLedgerService } from '../../ledger/service.ts';
import { createSetAsideJobService } from '../../monitoring/service.ts';
import { createResponseSweep } from '../../openai/responses/domain.ts';
import { createUsage } from '../../usage/domain.ts';
import type { Services } from '../services.ts';
import type { Base, DomainGroup } from './base.ts';

/** What an operator sees and keeps: usage, the audit log and ledgers, erasures, and what old rows are deleted. */
export function createOperation(
  services: Services,
  base: Base,
  { ledger, knowledge, audit }: { ledger: Domain<Ledger>; knowledge: Knowledge; audit: AuditLog | undefined },
) {
  const { db, secrets, config } = services;
  const auditing = createAudit({ ...base, audit, daysKept: config.auditDays });
  const usage = createUsage(base);
  const erasures = createErasures({
    ...base,
    documents: knowledge.erased,
    services: {
      embedderUrl: config.embedder === 'openai' ? config.embedUrl : undefined,
      tracesUrl: config.otlpEndpoint,
    },
    retention: config,
    register: openRegister(registerDirectory(config), secrets),
  });
  return {
    domains: [
      ...[ledger, auditing, usage, erasures, createDeletions(base)],
      ...[createIdempotencySweep(base), createResponseSweep(base)],
    ],
    services: {
      usage: usage.service,
      auditing: auditing.service,
      erasures: erasures.service,
      setAsideJobs: createSetAsideJobService(base),
      ledgers: createLedgerService({ db, secrets, ledger: ledger.service, audit }),
    },
  } satisfies DomainGroup;
}
