import type { ApiKey } from '../../api/generated.ts';
import { useApi } from '../../ui/query.ts';

const one = { page_size: 1 };

/** How much the app has of everything; undefined until it is known. */
export function useTotals() {
  return {
    files: useApi('GET /api/v1/files', { query: one }).data?.total_entries,
    sources: useApi('GET /api/v1/knowledge_sources', { query: one }).data?.total_entries,
    documents: useApi('GET /api/v1/knowledge_documents', { query: one }).data?.total_entries,
    automations: useApi('GET /api/v1/automations', { query: one }).data?.total_entries,
    users: useApi('GET /api/v1/users', { query: one }).data?.total_entries,
    agents: useApi('GET /api/v1/agents', { query: one }).data?.total_entries,
    keys: useApi('GET /api/v1/keys', { query: { page_size: 100 } }).data?.data.filter(isUsableSecret).length,
    runs: useApi('GET /api/v1/automation_runs', { query: { limit: 1 } }).data?.data.length,
  };
}

/** A key that a server can use: publishable ones only let users sign in. */
function isUsableSecret({ type, revoked_at, expires_at }: ApiKey): boolean {
  const hasExpired = expires_at !== undefined && Date.parse(expires_at) <= Date.now();
  return type === 'secret' && revoked_at === undefined && !hasExpired;
}
