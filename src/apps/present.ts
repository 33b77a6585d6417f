import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { AppRow, KeyRow, SandboxRow } from './store.ts';

export function presentApp(row: AppRow) {
  return compact({
    id: formatId('app', row.id),
    name: row.name,
    run_retention: row.runRetention,
    // Absent in the usual case.
    assistants: row.assistants ? undefined : false,
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}

export function presentSandbox(row: SandboxRow) {
  return {
    id: formatId('sandbox', row.id),
    app: formatId('app', row.appId),
    name: row.name,
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  };
}

export function presentKey(row: KeyRow & { fullKey?: string }) {
  return compact({
    id: formatId('key', row.id),
    app: formatId('app', row.appId),
    sandbox: presentSandboxId(row.sandboxId),
    type: row.type,
    name: row.name,
    hint: row.hint,
    full_key: row.fullKey,
    created_at: iso(row.createdAt),
    last_used_at: row.lastUsedAt && iso(row.lastUsedAt),
    revoked_at: row.revokedAt && iso(row.revokedAt),
    expires_at: row.expiresAt && iso(row.expiresAt),
    scopes: row.scopes,
  });
}
