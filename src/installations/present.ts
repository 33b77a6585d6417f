import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { InstallationRow } from './store.ts';

export function presentInstallation(row: InstallationRow, inboundUrl: string | undefined) {
  return compact({
    id: formatId('installation', row.id),
    app: formatId('app', row.appId),
    agent: formatId('agent', row.agentId),
    kind: row.kind,
    sandbox: presentSandboxId(row.sandboxId),
    inbound_url: inboundUrl,
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}
