import { page, pageOf, pageRequest } from '../http/pages.ts';
import { compact, iso } from '../http/present.ts';
import { type Api, operators, ref } from '../http/route.ts';
import { formatId } from '../ids.ts';
import type { AuditEntry } from '../tenancy/audit.ts';
import { auditEntrySchema, auditQuery, credentialUseQuery, credentialUseSchema } from './schema.ts';
import type { AuditService } from './service.ts';
import type { CredentialUseRow } from './store.ts';

const tag = 'Audit';

/** Who changed what, and who used which credential. */
export function registerAuditRoutes(api: Api, { auditing }: { auditing: AuditService }): void {
  api.provisioning(operators, {
    method: 'GET',
    path: '/audit',
    operationId: 'listAuditEntries',
    tag,
    summary: 'List changes, the newest first',
    description: 'Changes of the app, or of the sandbox that the caller is in.',
    query: auditQuery,
    responses: { 200: pageOf(ref(auditEntrySchema)) },
    handler: async ({ caller, query }) => {
      const request = pageRequest(query);
      const [rows, total] = await auditing.list(caller, query, request);
      return page(request, rows.map(presentEntry), total);
    },
  });
  api.provisioning(operators, {
    method: 'GET',
    path: '/credential_uses',
    operationId: 'listCredentialUses',
    tag,
    summary: 'List which credentials were used on which day',
    query: credentialUseQuery,
    responses: { 200: pageOf(ref(credentialUseSchema)) },
    handler: async ({ caller, query }) => {
      const request = pageRequest(query);
      const [rows, total] = await auditing.listUses(caller, query, request);
      return page(request, rows.map(presentUse), total);
    },
  });
}

const actorIds = { user: 'user', secret_key: 'key', publishable_key: 'key', developer: 'developer' } as const;

function presentEntry(row: AuditEntry) {
  return {
    ...compact({
      id: formatId('auditEntry', row.id),
      at: iso(row.at),
      actor: { kind: row.actorKind, id: formatId(actorIds[row.actorKind], row.actorId) },
      credential: row.credential,
      action: row.action,
      method: row.method,
      route: row.route,
      resource: row.resource,
      request_id: row.requestId,
      address: row.address,
    }),
    status: row.status,
  };
}

const credentialIds = {
  user: 'user',
  secret_key: 'key',
  publishable_key: 'key',
  personal_token: 'token',
  developer_token: 'token',
} as const;

function presentUse(row: CredentialUseRow) {
  return {
    credential: formatId(credentialIds[row.kind], row.credentialId),
    kind: row.kind,
    day: iso(row.day).slice(0, 10),
    first_at: iso(row.firstAt),
    last_at: iso(row.lastAt),
    requests: row.requests,
    refused: row.refused,
  };
}
