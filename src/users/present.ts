import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { UserRow } from './store.ts';

export function presentUser(row: UserRow) {
  return compact({
    id: formatId('user', row.id),
    app: formatId('app', row.appId),
    email: row.email,
    name: row.name,
    org: row.orgId && formatId('org', row.orgId),
    org_name: row.orgName,
    org_role: row.orgRole,
    is_system_user: row.isSystemUser,
    groups_overage: row.groupsOverage || null,
    metadata: row.metadata,
    sandbox: presentSandboxId(row.sandboxId),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}
