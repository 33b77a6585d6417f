import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { GroupRow, MemberRow } from './store.ts';

export function presentGroup(row: GroupRow) {
  return compact({
    id: formatId('group', row.id),
    app: formatId('app', row.appId),
    sandbox: presentSandboxId(row.sandboxId),
    namespace: row.namespace,
    external_id: row.externalId,
    name: row.name,
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}

export function presentGroupMember(row: MemberRow) {
  return {
    user: compact({ id: formatId('user', row.userId), email: row.email, name: row.name }),
    created_at: iso(row.createdAt),
  };
}
