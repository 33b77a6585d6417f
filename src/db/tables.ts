/*
 * What every table of the database is: one line for each, where a test misses a new one. Without it, no app could be
 * moved to another database, and nobody could say whether an erasure reaches the table.
 */

/**
 * What a move of an app to another database does with a table:
 *
 * - `app`: its rows of the app are copied, and deleted from the source after the switch.
 * - `jobs`: jobs are held from the freeze on and get new numbers on the target.
 * - `rebuilt`: unlogged tables, which every restart may empty.
 * - `shared`: rows of the installation that rows of the app refer to. Those that the target lacks are added.
 * - `stays`: rows of the installation, or of the moves themselves, which belong to their database.
 */
type Move = 'app' | 'jobs' | 'rebuilt' | 'shared' | 'stays';

/**
 * How an erasure treats a table:
 *
 * - `deleted`: what belongs to the subject is deleted in batches, before the rows above it.
 * - `follows`: its rows are deleted with a row that they belong to, by a foreign key or a trigger.
 * - `edited`: rows of others that name the user lose the name.
 * - `ids`: rows that stay, and hold ids, digests or addresses of requests, but no contents.
 * - `expires`: what the subject may have in it is deleted by its age.
 * - `others`: nothing in it belongs to a user, a document or a source.
 */
type Erasure = 'deleted' | 'follows' | 'edited' | 'ids' | 'expires' | 'others';

/**
 * Where a table without `app_id` is when the installation has cells. Rows of the other tables are in the cell of their
 * app; only `cell_apps`, which names that cell, is in the directory:
 *
 * - `directory`: only in the directory's database.
 * - `cell`: every cell has rows of its own, which say nothing about other cells.
 * - `both`: the directory has the rows; a cell has copies of those that its apps refer to.
 * - `each`: every database has rows about itself.
 */
type Place = 'directory' | 'cell' | 'both' | 'each';

type Table = { move: Move; erasure: Erasure; place?: Place };

export const tables: Readonly<Record<string, Table>> = {
  agents: ofApp('deleted'),
  api_keys: ofApp('others'),
  // Copies of keys and jobs while an app is moved to another database.
  app_changes: { move: 'stays', erasure: 'expires' },
  app_fences: { move: 'stays', erasure: 'others' },
  app_held_jobs: { move: 'stays', erasure: 'expires' },
  app_quotas: ofApp('others'),
  app_secrets: ofApp('others'),
  app_usage: ofApp('others'),
  approval_links: ofApp('deleted'),
  approvals: ofApp('edited'),
  // The name and developer of an app are also in cell_apps.
  apps: { move: 'app', erasure: 'others', place: 'cell' },
  assistant_grants: ofApp('deleted'),
  audit_entries: ofApp('ids'),
  automation_entry_fragments: ofApp('follows'),
  automation_graphs: ofApp('follows'),
  automation_invocations: ofApp('deleted'),
  automation_program_work: ofApp('follows'),
  automation_run_children: ofApp('follows'),
  automation_run_entries: ofApp('follows'),
  automation_run_files: ofApp('follows'),
  automation_run_generations: ofApp('follows'),
  automation_run_output: ofApp('follows'),
  automation_run_trees: ofApp('follows'),
  automation_run_wakes: ofApp('follows'),
  automation_runs: ofApp('deleted'),
  automation_work_claims: { move: 'rebuilt', erasure: 'follows' },
  automations: ofApp('deleted'),
  cell_apps: ofDatabase('directory'),
  cell_identity: ofDatabase('each'),
  cell_moves: { move: 'stays', erasure: 'others' },
  cells: ofDatabase('directory'),
  config_versions: ofApp('deleted'),
  configs: ofApp('deleted'),
  console_developer_sessions: ofDatabase('directory'),
  console_sign_in_links: ofDatabase('directory'),
  console_user_sessions: ofApp('deleted'),
  // Politeness to a host counts the requests of all cells.
  crawl_host_shares: ofDatabase('directory'),
  crawl_hosts: ofApp('follows'),
  crawl_pages: ofApp('deleted'),
  crawled_pages: ofApp('deleted'),
  crawls: ofApp('deleted'),
  credential_uses: ofApp('deleted'),
  credentials: ofApp('follows'),
  developer_tokens: ofDatabase('directory'),
  // Apps refer to their developer.
  developers: { move: 'shared', erasure: 'others', place: 'both' },
  doomed_blobs: ofApp('deleted'),
  erasures: ofApp('ids'),
  event_logs: ofApp('others'),
  events: ofApp('deleted'),
  external_accounts: ofApp('deleted'),
  extraction_data: ofApp('follows'),
  extraction_names: ofApp('follows'),
  extraction_outputs: ofApp('deleted'),
  extraction_parts: ofApp('deleted'),
  extraction_schemas: ofApp('follows'),
  extractions: ofApp('deleted'),
  file_grants: ofApp('deleted'),
  files: ofApp('deleted'),
  group_members: ofApp('deleted'),
  groups: ofApp('others'),
  idempotency_holders: ofApp('deleted'),
  idempotency_records: ofApp('deleted'),
  idempotency_usage: ofApp('others'),
  identity_issuers: ofApp('others'),
  inbound_messages: ofApp('deleted'),
  installations: ofApp('deleted'),
  jobs: { move: 'jobs', erasure: 'ids' },
  knowledge_acl_principals: ofApp('deleted'),
  knowledge_acls: ofApp('others'),
  knowledge_bundles: ofApp('deleted'),
  knowledge_chunks: ofApp('deleted'),
  knowledge_codes: ofApp('deleted'),
  knowledge_dead_ranges: ofApp('deleted'),
  knowledge_documents: ofApp('deleted'),
  knowledge_embedders: ofApp('follows'),
  knowledge_embedding_refusals: ofApp('follows'),
  knowledge_indexes: ofApp('deleted'),
  knowledge_ingestion_items: ofApp('deleted'),
  knowledge_ingestions: ofApp('deleted'),
  knowledge_model_codes: ofApp('deleted'),
  knowledge_model_terms: ofApp('deleted'),
  knowledge_models: ofApp('deleted'),
  knowledge_postings: ofApp('deleted'),
  knowledge_pull_removals: ofApp('follows'),
  knowledge_segments: ofApp('deleted'),
  knowledge_sources: ofApp('deleted'),
  knowledge_sync_batches: ofApp('follows'),
  knowledge_sync_items: ofApp('deleted'),
  knowledge_sync_states: ofApp('deleted'),
  knowledge_syncs: ofApp('deleted'),
  knowledge_texts: ofApp('deleted'),
  knowledge_tombstones: ofApp('deleted'),
  knowledge_vectors: ofApp('deleted'),
  knowledge_version_texts: ofApp('follows'),
  knowledge_versions: ofApp('deleted'),
  kv_changes: ofApp('deleted'),
  kv_counters: ofApp('others'),
  kv_entries: ofApp('deleted'),
  kv_usage: ofApp('deleted'),
  kv_watches: ofApp('deleted'),
  ledger_inheritance: { move: 'stays', erasure: 'others' },
  ledger_keys: { move: 'shared', erasure: 'others', place: 'cell' },
  ledger_segments: ofApp('ids'),
  ledgers: ofApp('ids'),
  model_aliases: ofApp('others'),
  model_budget_uses: ofApp('deleted'),
  model_budgets: ofApp('deleted'),
  model_calls: ofApp('deleted'),
  models: ofApp('others'),
  openai_responses: ofApp('deleted'),
  orgs: ofApp('others'),
  personal_tokens: ofApp('deleted'),
  pictures: { move: 'rebuilt', erasure: 'follows' },
  // The same settings fill it in every cell.
  quota_defaults: ofDatabase('cell'),
  rate_budgets: ofDatabase('cell', 'ids'),
  refresh_tokens: ofApp('deleted'),
  removed_knowledge_sources: ofApp('ids'),
  run_anchors: ofApp('ids'),
  sandboxes: ofApp('others'),
  schema_migrations: ofDatabase('each'),
  server_facts: ofDatabase('each'),
  sign_in_addresses: ofApp('deleted'),
  // Failed sign-ins from one address count in all cells; those of the last minutes are kept.
  sign_in_failures: ofDatabase('directory', 'expires'),
  team_memberships: ofApp('deleted'),
  teams: ofApp('others'),
  threads: ofApp('deleted'),
  uploads: ofApp('deleted'),
  users: ofApp('deleted'),
  webhook_deliveries: ofApp('follows'),
  webhooks: ofApp('others'),
};

/** The tables whose rows of an app a move copies. */
export const appTables: readonly string[] = Object.keys(tables).filter((name) => tables[name]?.move === 'app');

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

function ofApp(erasure: Erasure): Table {
  return { move: 'app', erasure };
}

function ofDatabase(place: Place, erasure: Erasure = 'others'): Table {
  return { move: 'stays', erasure, place };
}
