/**
 * The names of background jobs, each a verb and its object. They are stored and therefore public: another release
 * finds its jobs by them.
 */
export const taskNames = {
  advanceRun: 'advance_run',
  advanceRuns: 'advance_runs',
  applySyncs: 'apply_syncs',
  compactIndex: 'compact_index',
  crawl: 'crawl',
  deliverDue: 'deliver_due',
  deliverWebhook: 'deliver_webhook',
  dispatchEvent: 'dispatch_event',
  embedDocuments: 'embed_documents',
  erase: 'erase',
  ingest: 'ingest',
  learnSources: 'learn_sources',
  logEvents: 'log_events',
  matchEvent: 'match_event',
  mergeIndex: 'merge_index',
  purgeSandboxes: 'purge_sandboxes',
  purgeSources: 'purge_sources',
  sealLedger: 'seal_ledger',
  startPulls: 'start_pulls',
  structureExtraction: 'structure_extraction',
  sweepAssistants: 'sweep_assistants',
  sweepAudit: 'sweep_audit',
  sweepAuth: 'sweep_auth',
  sweepBlobs: 'sweep_blobs',
  sweepConsole: 'sweep_console',
  sweepEvents: 'sweep_events',
  sweepIdempotency: 'sweep_idempotency',
  sweepKv: 'sweep_kv',
  sweepModels: 'sweep_models',
  sweepRuns: 'sweep_runs',
  sweepResponses: 'sweep_responses',
  sweepUploads: 'sweep_uploads',
  sweepUsage: 'sweep_usage',
  sweepVersions: 'sweep_versions',
  wakeIdlePrograms: 'wake_idle_programs',
  wakePrograms: 'wake_programs',
} as const;

export type TaskName = (typeof taskNames)[keyof typeof taskNames];
