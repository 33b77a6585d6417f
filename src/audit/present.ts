import { compact, iso } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { AuditEntry, CredentialUseRow } from './store.ts';

export function presentEntry(row: AuditEntry) {
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
      attempts: row.attempts,
    }),
    status: row.status,
  };
}

export function presentUse(row: CredentialUseRow) {
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

const actorIds = {
  user: 'user',
  secret_key: 'key',
  publishable_key: 'key',
  developer: 'developer',
  inbound_url: 'source',
} as const;

const credentialIds = {
  user: 'user',
  secret_key: 'key',
  publishable_key: 'key',
  personal_token: 'token',
  developer_token: 'token',
} as const;
