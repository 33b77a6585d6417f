import { compact, iso } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { ConfigRow } from './store.ts';

export function presentConfig(row: ConfigRow, content?: string) {
  return compact({
    id: formatId('config', row.id),
    virtual_path: row.virtualPath,
    content_type: row.contentType,
    content,
    version: row.version,
    current_version: {
      id: formatId('configVersion', row.versionId),
      version_number: row.version,
      content_hash: row.contentHash.toString('hex'),
      created_at: iso(row.versionCreatedAt),
    },
    file: formatId('file', row.fileId),
    org: row.orgId && formatId('org', row.orgId),
    agent: row.agentId && formatId('agent', row.agentId),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}
