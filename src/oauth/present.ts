import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { PendingRequest } from './pending.ts';
import { isLocal } from './protocol.ts';
import type { GrantRow } from './store.ts';

export function presentAssistant(row: GrantRow) {
  return compact({
    id: formatId('assistant', row.id),
    app: formatId('app', row.appId),
    sandbox: presentSandboxId(row.sandboxId),
    user: formatId('user', row.userId),
    name: row.clientName,
    url: row.clientUrl,
    redirect_host: hostOf(row.redirectUri),
    scopes: row.scopes,
    created_at: iso(row.createdAt),
    last_used_at: iso(row.usedAt),
    expires_at: iso(row.expiresAt),
  });
}

export function presentRequest({ client, redirectUri, scopes }: PendingRequest) {
  return compact({
    name: client.name,
    url: client.url,
    is_verified: client.isVerified,
    redirect_host: hostOf(redirectUri),
    is_local: isLocal(redirectUri),
    scopes,
  });
}

function hostOf(uri: string): string {
  return new URL(uri).host;
}
