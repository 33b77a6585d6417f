import { operators } from '../http/route/access.ts';
import { pageOf, readPage } from '../http/route/pages.ts';
import { type Api, ref } from '../http/route/route.ts';
import { presentEntry, presentUse } from './present.ts';
import { auditEntrySchema, auditQuery, credentialUseQuery, credentialUseSchema } from './schema.ts';
import type { AuditService } from './service.ts';

const tag = 'Audit';

/** Who changed what, and who used which credential. */
export function registerAuditRoutes(api: Api, { auditing }: { auditing: AuditService }): void {
  api.provisioning(operators, {
    method: 'GET',
    path: '/audit',
    operationId: 'listAuditEntries',
    tag,
    summary: 'List changes, newest first',
    description: 'Changes of the app, or of the sandbox that the caller is in.',
    query: auditQuery,
    responses: { 200: pageOf(ref(auditEntrySchema)) },
    handler: ({ caller, query }) => readPage(query, (request) => auditing.list(caller, query, request), presentEntry),
  });
  api.provisioning(operators, {
    method: 'GET',
    path: '/credential_uses',
    operationId: 'listCredentialUses',
    tag,
    summary: 'List the use of credentials by day',
    description:
      'One row for each credential, day and kind of operation, newest day first, with the number of requests. Counts are written every ten seconds.',
    query: credentialUseQuery,
    responses: { 200: pageOf(ref(credentialUseSchema)) },
    handler: ({ caller, query }) => readPage(query, (request) => auditing.listUses(caller, query, request), presentUse),
  });
}
