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
    keys: useApi('GET /api/v1/keys', { query: one }).data?.total_entries,
    runs: useApi('GET /api/v1/automation_runs', { query: { limit: 1 } }).data?.data.length,
  };
}
