/**
 * What a move of an app does with each table. A table that a migration adds needs a line here, which a test checks:
 * without one, no app could be moved.
 *
 * - `app`: its rows of the app are copied, and deleted from the source after the switch.
 * - `jobs`: jobs are held from the freeze on and get new numbers on the target.
 * - `rebuilt`: unlogged tables, which every restart may empty.
 * - `shared`: rows of the installation that rows of the app refer to. Those that the target lacks are added.
 * - `stays`: rows of the installation, or of the moves themselves, which belong to their database.
 */
type TableKind = 'app' | 'jobs' | 'rebuilt' | 'shared' | 'stays';

export const catalogue: Readonly<Record<string, TableKind>> = {
  ...each('app', [
    'agents',
    'api_keys',
    'app_quotas',
    'app_secrets',
    'app_usage',
    'approval_links',
    'approvals',
    'apps',
    'assistant_grants',
    'audit_entries',
    'automation_entry_fragments',
    'automation_graphs',
    'automation_invocations',
    'automation_program_work',
    'automation_run_children',
    'automation_run_entries',
    'automation_run_files',
    'automation_run_generations',
    'automation_run_output',
    'automation_run_trees',
    'automation_run_wakes',
    'automation_runs',
    'automations',
    'config_versions',
    'configs',
    'console_user_sessions',
    'crawl_hosts',
    'crawl_pages',
    'crawled_pages',
    'crawls',
    'credential_uses',
    'credentials',
    'doomed_blobs',
    'erasures',
    'event_logs',
    'events',
    'external_accounts',
    'extraction_data',
    'extraction_names',
    'extraction_outputs',
    'extraction_parts',
    'extraction_schemas',
    'extractions',
    'file_grants',
    'files',
    'group_members',
    'groups',
    'idempotency_holders',
    'idempotency_records',
    'idempotency_usage',
    'identity_issuers',
    'inbound_messages',
    'installations',
    'knowledge_acl_principals',
    'knowledge_acls',
    'knowledge_bundles',
    'knowledge_chunks',
    'knowledge_codes',
    'knowledge_dead_ranges',
    'knowledge_documents',
    'knowledge_embedders',
    'knowledge_embedding_refusals',
    'knowledge_indexes',
    'knowledge_ingestion_items',
    'knowledge_ingestions',
    'knowledge_model_codes',
    'knowledge_model_terms',
    'knowledge_models',
    'knowledge_postings',
    'knowledge_pull_removals',
    'knowledge_segments',
    'knowledge_sources',
    'knowledge_sync_batches',
    'knowledge_sync_items',
    'knowledge_sync_states',
    'knowledge_syncs',
    'knowledge_texts',
    'knowledge_tombstones',
    'knowledge_vectors',
    'knowledge_version_texts',
    'knowledge_versions',
    'kv_changes',
    'kv_counters',
    'kv_entries',
    'kv_usage',
    'kv_watches',
    'ledger_segments',
    'ledgers',
    'model_aliases',
    'model_budget_uses',
    'model_budgets',
    'model_calls',
    'models',
    'openai_responses',
    'orgs',
    'personal_tokens',
    'refresh_tokens',
    'removed_knowledge_sources',
    'run_anchors',
    'sandboxes',
    'sign_in_addresses',
    'team_memberships',
    'teams',
    'threads',
    'uploads',
    'users',
    'webhook_deliveries',
    'webhooks',
  ]),
  jobs: 'jobs',
  ...each('rebuilt', ['automation_work_claims', 'pictures']),
  ...each('shared', ['developers', 'ledger_keys']),
  ...each('stays', [
    ...[
      'console_developer_sessions',
      'console_sign_in_links',
      'developer_tokens',
      'quota_defaults',
      'ledger_inheritance',
    ],
    ...['crawl_host_shares', 'rate_budgets', 'sign_in_failures'],
    ...['cell_apps', 'cell_identity', 'cells'],
    ...['app_fences', 'app_changes', 'app_held_jobs', 'cell_moves'],
    ...['schema_migrations', 'server_facts'],
  ]),
};

/**
 * What a move does with each sequence. The numbers of those that `advance` order or name rows of an app, so on the target
 * they continue after the last number of the source: no number ever means two things of one app.
 */
export const sequences: Readonly<Record<string, 'advance' | 'stays'>> = {
  knowledge_segment_numbers: 'advance',
  events_place_seq: 'advance',
  crawl_pages_position_seq: 'advance',
  // Jobs are added to the target's queue.
  jobs_id_seq: 'stays',
  app_changes_id_seq: 'stays',
};

/** Entries of the audit log are written up to a second after the response, so this table is frozen last. */
export const lateTables: ReadonlySet<string> = new Set(['audit_entries']);

function each(kind: TableKind, names: string[]): Record<string, TableKind> {
  return Object.fromEntries(names.map((name) => [name, kind]));
}
