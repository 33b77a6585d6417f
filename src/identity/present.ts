import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { IssuerRow } from './store.ts';

export function presentIssuer(row: IssuerRow) {
  return compact({
    id: formatId('identityIssuer', row.id),
    app: formatId('app', row.appId),
    sandbox: presentSandboxId(row.sandboxId),
    issuer: row.issuer,
    audience: row.audience,
    jwks_url: row.jwksUrl,
    create_users: row.createsUsers,
    link_by_email: row.linksByEmail,
    claims: row.claims,
    console: row.clientId === null ? null : { client_id: row.clientId },
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}
