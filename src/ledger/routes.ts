import { operators } from '../http/route/access.ts';
import { type Api, ref } from '../http/route/route.ts';
import { ledgerHeadSchema, ledgerQuery, ledgerVerificationSchema, verificationQuery } from './schema.ts';
import { formatCursor, type LedgerService } from './service.ts';

const tag = 'Audit';

/** Operations that export the head of a ledger and verify that nothing in it was changed. */
export function registerLedgerRoutes(api: Api, { ledgers }: { ledgers: LedgerService }): void {
  api.provisioning(operators, {
    method: 'GET',
    path: '/ledger',
    operationId: 'getLedgerHead',
    tag,
    summary: 'Export the head of the ledger',
    description:
      'Seals what is committed, and returns the newest segment with its signature. Store it elsewhere to compare the ledger with it later.',
    query: ledgerQuery,
    responses: { 200: ref(ledgerHeadSchema) },
    handler: ({ caller, query }) => ledgers.head(caller, query.segment),
  });
  api.provisioning(operators, {
    method: 'GET',
    path: '/ledger/verification',
    operationId: 'verifyLedger',
    tag,
    summary: 'Verify a part of the ledger',
    description:
      'Compares segments, audit entries and journals of runs with their digests and signatures. Repeat the request with `next_cursor` until the response has none. Here the server verifies its own data; `quarry verify` on a backup does not depend on the server.',
    query: verificationQuery,
    responses: { 200: ref(ledgerVerificationSchema) },
    handler: async ({ caller, query }) => {
      const { problems, counts, next } = await ledgers.verify(caller, query.cursor);
      return { problems, counts, ...(next === undefined ? {} : { next_cursor: formatCursor(next) }) };
    },
  });
}
