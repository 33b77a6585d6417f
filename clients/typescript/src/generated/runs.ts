// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type EventStream, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const runs = (c: Connection) => ({
  /** List the runs of all automations, newest first. */
  list: (query?: { /** `waiting`: in progress, but only waiting for a time, a signal or a child run. */
status?: 'pending' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled' | undefined; /** The id or lookup key of an automation. */
automation?: string | undefined; /** Only runs that repeat or continue this run. */
retried_from?: string | undefined; /** A time in ISO 8601. */
since?: string | undefined; /** A time in ISO 8601. */
until?: string | undefined; /** The id of a run, or part of the name or lookup key of its automation. */
search?: string | undefined; /** Default 25, at most 100. */
limit?: number | undefined; /** The `after_cursor` of the previous page. */
after_cursor?: string | undefined; }, options?: CallOptions): Pages<S.AutomationRunSummary, S.AutomationRunPage> => c.list('/api/v1/automation_runs', query, options),
  /** Get a run. */
  get: (automationRun: string, options?: CallOptions): Promise<S.AutomationRun> => c.get(path`/api/v1/automation_runs/${automationRun}`, undefined, options),
  /** Read the journal of a run, oldest entry first. */
  journal: (automationRun: string, query?: { /** Default 50, at most 100. */
limit?: number | undefined; /** The `after_cursor` of the previous page. */
after_cursor?: string | undefined; }, options?: CallOptions): Pages<S.WorkflowJournalEntry, S.RunJournalPage> => c.list(path`/api/v1/automation_runs/${automationRun}/journal`, query, options),
  /** Follow the status of an invoked run. */
  stream: (automationRun: string, options?: CallOptions): EventStream<S.AutomationRun> => c.stream(path`/api/v1/automation_runs/${automationRun}/stream`, undefined, options),
  /** Follow the texts that the language model writes for a run. */
  streamOutput: (automationRun: string, options?: CallOptions): EventStream<S.AutomationRunOutput> => c.stream(path`/api/v1/automation_runs/${automationRun}/output_stream`, undefined, options),
  /** Cancel a run that has not ended. */
  cancel: (automationRun: string, options?: CallOptions): Promise<S.AutomationRun> => c.postOnce(path`/api/v1/automation_runs/${automationRun}/cancel`, undefined, options),
  /** Start a new run from one that has ended, from its beginning or from a node. */
  retry: (automationRun: string, body?: S.RetryAutomationRunRequest, options?: CallOptions): Promise<S.AutomationRun> => c.postOnce(path`/api/v1/automation_runs/${automationRun}/retry`, body, options),
  /** Send a signal to a run. */
  signal: (automationRun: string, body: S.SignalAutomationRunRequest, options?: CallOptions): Promise<S.AutomationRun> => c.postOnce(path`/api/v1/automation_runs/${automationRun}/signal`, body, options),
  /** Report on a claimed run; `running` renews the claim. */
  report: (automationRun: string, body: S.ReportAutomationRunRequest, options?: CallOptions): Promise<S.AutomationRun> => c.postOnce(path`/api/v1/automation_runs/${automationRun}/status`, body, options),
  /** Write what a program did in a run, and renew the claim. */
  appendEntries: (automationRun: string, body: S.AppendRunEntriesRequest, options?: CallOptions): Promise<S.AppendedWork> => c.postOnce(path`/api/v1/automation_runs/${automationRun}/entries`, body, options),
  /** Continue to read the journal of a claimed run. */
  readClaimedJournal: (automationRun: string, body: S.ReadClaimedJournalRequest, options?: CallOptions): Promise<S.WorkJournalPage> => c.postOnce(path`/api/v1/automation_runs/${automationRun}/claimed_journal`, body, options),
  /** Read the journal of the run that a function was woken for. */
  readClaimedRun: (body?: S.ReadClaimedRunRequest, options?: CallOptions): Promise<S.ClaimedJournal> => c.send('POST', '/api/v1/claimed_run/journal', body, options),
  /** Write what a function did in the run that it was woken for. */
  appendClaimedRun: (body: S.AppendClaimedRunRequest, options?: CallOptions): Promise<S.AppendedWork> => c.send('POST', '/api/v1/claimed_run/entries', body, options),
  /** List the approvals that wait for the caller, newest first. */
  listApprovals: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Default `waiting`. */
status?: 'waiting' | 'answered' | 'expired' | 'cancelled' | undefined; /** Only the approvals of this run. */
run?: string | undefined; }, options?: CallOptions): Pages<S.Approval, S.ApprovalPage> => c.list('/api/v1/approvals', query, options),
  /** Get an approval. */
  getApproval: (approval: string, options?: CallOptions): Promise<S.Approval> => c.get(path`/api/v1/approvals/${approval}`, undefined, options),
  /** Answer an approval, so that its run continues. */
  answerApproval: (approval: string, body: S.AnswerApprovalRequest, options?: CallOptions): Promise<S.Approval> => c.postOnce(path`/api/v1/approvals/${approval}/answer`, body, options),
  /** Create a link by which a person without an account answers. */
  createApprovalLink: (approval: string, body: S.CreateApprovalLinkRequest, options?: CallOptions): Promise<S.ApprovalLink> => c.send('POST', path`/api/v1/approvals/${approval}/links`, body, options),
  /** Show the question of a link. */
  getLinkedApproval: (token: string, options?: CallOptions): Promise<S.LinkedApproval> => c.get(path`/api/v1/approval_links/${token}`, undefined, options),
  /** Answer by a link. */
  answerLinkedApproval: (token: string, body: S.AnswerLinkedApprovalRequest, options?: CallOptions): Promise<S.LinkedApproval> => c.send('POST', path`/api/v1/approval_links/${token}`, body, options),
});
