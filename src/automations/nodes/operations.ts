import type { ScopeNeed } from '../../tenancy/key-scopes.ts';

const reads = (area: ScopeNeed['area']): ScopeNeed => ({ area, reads: true });
const changes = (area: ScopeNeed['area']): ScopeNeed => ({ area, reads: false });

/**
 * The tools of the MCP endpoint that a `generate` node may name, with the scope that each needs. Those that emit events
 * or start runs are missing: they would not count in the limits of a run's tree, so an automation offers them.
 */
export const operations: Readonly<Record<string, ScopeNeed>> = {
  list_knowledge_sources: reads('knowledge'),
  search_knowledge: reads('knowledge'),
  list_documents: reads('knowledge'),
  read_document: reads('knowledge'),
  list_files: reads('files'),
  read_file: reads('files'),
  read_extraction: reads('extractions'),
  kv_get: reads('kv'),
  kv_list: reads('kv'),
  kv_put: changes('kv'),
  kv_increment: changes('kv'),
  kv_delete: changes('kv'),
  kv_batch: changes('kv'),
  list_automations: reads('automations'),
  list_invocable_automations: reads('automations'),
  read_run: reads('automations'),
  signal_run: changes('automations'),
  cancel_run: changes('automations'),
};
