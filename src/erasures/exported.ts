import type { IdKind } from '../lib/ids.ts';

/*
 * What the archive of a user has of each table, or why it has nothing. A table that a migration adds needs a line here
 * unless nothing in it belongs to a user, which a test checks.
 */

/** The rows of a table in the archive: one line of JSON each. */
export type Exported = {
  /** The name of the file, without `.ndjson`. */
  file: string;
  /** What the ids of the rows are ids of. */
  id?: IdKind;
  /** Columns for the server alone. Columns of bytes are left out without being named. */
  omit?: readonly string[];
  /** Columns of bytes that are written in hexadecimal. */
  hex?: readonly string[];
};

/** Columns that no file has: the app is named once, and the rest is internal. */
export const omittedEverywhere: readonly string[] = [
  ...[
    'app_id',
    'version',
    'traceparent',
    'tree_id',
    'cause_tree_id',
    'cause_depth',
    'lease_holder',
    'lease_until',
    'known_to',
  ],
];

export const exported: Readonly<Record<string, Exported>> = {
  users: { file: 'user', id: 'user', omit: ['password_hash', 'session_epoch', 'sessions_ended_at', 'email_folded'] },
  agents: { file: 'agents', id: 'agent' },
  approval_links: { file: 'approval_links' },
  approvals: { file: 'approvals', id: 'approval', omit: ['command_id', 'attempt'] },
  assistant_grants: {
    file: 'assistants',
    id: 'assistant',
    omit: ['session_epoch', 'issuer_id', 'code_challenge', 'key_id'],
  },
  audit_entries: { file: 'audit_entries', id: 'auditEntry', omit: ['segment'] },
  automation_graphs: { file: 'automation_versions' },
  automation_run_entries: { file: 'automation_run_entries', id: 'journalEntry' },
  automation_run_output: { file: 'automation_run_output' },
  automation_runs: {
    file: 'automation_runs',
    id: 'automationRun',
    omit: [
      ...['depth', 'event_depth', 'parent_command_id', 'sequence', 'wake_timer', 'lease_seconds', 'changes', 'linked'],
      ...['journal_bytes', 'claim', 'workflow_changed', 'waiting_for'],
    ],
  },
  automations: { file: 'automations', id: 'automation', omit: ['next_tick_at'] },
  config_versions: { file: 'config_versions', id: 'configVersion' },
  configs: { file: 'configs', id: 'config', omit: ['owner_id'] },
  console_user_sessions: { file: 'console_sessions', omit: ['session_epoch', 'issuer_id'] },
  crawled_pages: { file: 'crawled_pages', omit: ['etag', 'links'] },
  credential_uses: { file: 'credential_uses' },
  events: {
    file: 'events',
    id: 'event',
    omit: ['depth', 'heard', 'place', 'position', 'dispatched_at', 'webhook_id'],
  },
  external_accounts: { file: 'sign_in_accounts' },
  extraction_data: { file: 'extraction_data' },
  extraction_outputs: { file: 'extraction_outputs', id: 'extractionOutput' },
  extraction_schemas: { file: 'extraction_schemas' },
  extractions: { file: 'extractions', id: 'extraction' },
  file_grants: { file: 'file_grants', omit: ['position'] },
  files: { file: 'files', id: 'file', omit: ['blob_key'], hex: ['checksum'] },
  group_members: { file: 'groups' },
  installations: { file: 'installations', id: 'installation' },
  knowledge_acl_principals: { file: 'document_grants' },
  knowledge_documents: {
    file: 'knowledge_documents',
    id: 'document',
    omit: [
      ...['seen_by', 'first_ordinal', 'chunk_count', 'embedding_model', 'acl_id', 'acl_version', 'external_order'],
      ...['external_seen_by', 'external_version', 'external_seen_at', 'version_at'],
    ],
  },
  knowledge_ingestion_items: { file: 'knowledge_ingestion_items', omit: ['acl_id', 'has_acl', 'is_text', 'dedupe'] },
  knowledge_ingestions: { file: 'knowledge_ingestions', id: 'ingestion', omit: ['acl_ids', 'queued'] },
  knowledge_sources: {
    file: 'knowledge_sources',
    id: 'source',
    omit: ['credentials_for', 'pull_state', 'held_deletions', 'inbound_previous_secret_until', 'versions_from'],
  },
  knowledge_syncs: { file: 'knowledge_syncs', id: 'sync', omit: ['fence', 'cursor', 'documents_before'] },
  knowledge_texts: { file: 'knowledge_texts' },
  knowledge_tombstones: { file: 'knowledge_deletions', omit: ['external_order'] },
  knowledge_version_texts: { file: 'knowledge_version_texts' },
  knowledge_versions: {
    file: 'knowledge_versions',
    omit: ['acl_id', 'external_order', 'external_version'],
    hex: ['content_hash'],
  },
  kv_changes: { file: 'key_value_changes', omit: ['position', 'entry_id'] },
  kv_entries: { file: 'key_value_entries', omit: ['id'] },
  model_budget_uses: { file: 'model_budget_uses', omit: ['soft_at', 'hard_at'] },
  model_budgets: { file: 'model_budgets', id: 'modelBudget' },
  model_calls: { file: 'model_calls', id: 'modelCall', omit: ['reserved_tokens', 'reserved_cost', 'model_id'] },
  openai_responses: { file: 'answers', id: 'response' },
  personal_tokens: { file: 'personal_tokens', id: 'token', omit: ['session_epoch', 'issuer_id', 'parent_id'] },
  refresh_tokens: { file: 'sessions', omit: ['session_epoch', 'family_id'] },
  sign_in_addresses: { file: 'sign_in_addresses' },
  team_memberships: { file: 'team_memberships', id: 'membership' },
  threads: { file: 'threads', id: 'thread' },
  uploads: { file: 'unfinished_uploads', id: 'upload', omit: ['blob_key', 'state', 'holder'] },
};

/** Why the archive has nothing of a table: the reasons are part of it. */
export const leftOut: Readonly<Record<string, readonly string[]>> = {
  'Made from the texts of documents, which are in the archive: the search index and what the embedder learned.': [
    ...['knowledge_bundles', 'knowledge_chunks', 'knowledge_codes', 'knowledge_dead_ranges', 'knowledge_indexes'],
    ...['knowledge_model_codes', 'knowledge_model_terms', 'knowledge_models', 'knowledge_postings'],
    ...['knowledge_segments', 'knowledge_vectors', 'knowledge_embedding_refusals', 'knowledge_embedders'],
  ],
  'Made from files, which are in the archive: small pictures.': ['pictures'],
  'Progress of work, whose results are in the archive.': [
    ...['automation_program_work', 'automation_run_children', 'automation_run_generations', 'automation_run_trees'],
    ...['automation_run_wakes', 'automation_work_claims', 'crawl_hosts', 'crawl_pages', 'crawls'],
    ...['extraction_names', 'extraction_parts', 'knowledge_pull_removals', 'knowledge_sync_batches'],
    ...['knowledge_sync_items', 'knowledge_sync_states', 'inbound_messages', 'jobs', 'app_held_jobs'],
  ],
  'Secrets that the server never shows, and digests of credentials.': ['automation_entry_fragments', 'credentials'],
  'Copies of responses that the user already received, encrypted and kept for a day.': [
    ...['automation_invocations', 'idempotency_holders', 'idempotency_records'],
  ],
  'Copies of events, which are in the archive.': ['webhook_deliveries'],
  'Counters, marks of deletions, and which run names which file: they have ids only.': [
    'automation_run_files',
    ...['kv_usage', 'kv_watches', 'rate_budgets', 'removed_knowledge_sources', 'doomed_blobs', 'app_changes'],
    ...['sign_in_failures'],
  ],
  'Proofs, which have ids and digests only.': ['erasures', 'ledger_segments', 'ledgers', 'run_anchors'],
};
