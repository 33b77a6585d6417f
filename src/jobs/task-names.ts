/**
 * The names that background jobs are stored under, each a verb and what it is done to. They are public: a process of
 * another version finds the jobs of this one by them.
 */
export const taskNames = {
  advanceRun: 'advance_run',
  advanceRuns: 'advance_runs',
  compactIndex: 'compact_index',
  crawl: 'crawl',
  dispatchEvent: 'dispatch_event',
  embedDocuments: 'embed_documents',
  ingest: 'ingest',
  learnSources: 'learn_sources',
  mergeIndex: 'merge_index',
  purgeSources: 'purge_sources',
  startPulls: 'start_pulls',
  sweepAudit: 'sweep_audit',
  sweepAuth: 'sweep_auth',
  sweepBlobs: 'sweep_blobs',
  sweepConsole: 'sweep_console',
  sweepUsage: 'sweep_usage',
} as const;

export type TaskName = (typeof taskNames)[keyof typeof taskNames];
