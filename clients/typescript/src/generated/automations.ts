// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const automations = (c: Connection) => ({
  /** Create an automation. */
  create: (body: S.CreateAutomationRequest, options?: CallOptions): Promise<S.Automation> => c.postOnce('/api/v1/automations', body, options),
  /** List automations. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Only those of this type. */
type?: 'trigger' | 'scheduled' | 'invoked' | undefined; /** Only those with this status. */
status?: 'draft' | 'running' | 'paused' | undefined; /** Part of the name or the lookup key, case-insensitive. */
search?: string | undefined; }, options?: CallOptions): Pages<S.Automation, S.AutomationPage> => c.list('/api/v1/automations', query, options),
  /** Get an automation. */
  get: (automation: string, options?: CallOptions): Promise<S.Automation> => c.get(path`/api/v1/automations/${automation}`, undefined, options),
  /** Update an automation. */
  update: (automation: string, body?: S.UpdateAutomationRequest, options?: CallOptions): Promise<S.Automation> => c.send('PATCH', path`/api/v1/automations/${automation}`, body, options),
  /** Delete an automation. */
  delete: (automation: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/automations/${automation}`, undefined, options),
  /** Check the text of an automation without saving it. */
  check: (body: S.CheckAutomationRequest, options?: CallOptions): Promise<S.CheckAutomationResponse> => c.postOnce('/api/v1/automations/check', body, options),
  /** Let an automation start runs. */
  activate: (automation: string, options?: CallOptions): Promise<S.Automation> => c.postOnce(path`/api/v1/automations/${automation}/activate`, undefined, options),
  /** Stop new runs; active runs continue. */
  pause: (automation: string, options?: CallOptions): Promise<S.Automation> => c.postOnce(path`/api/v1/automations/${automation}/pause`, undefined, options),
  /** Start a run of an invoked automation. */
  invoke: (automation: string, body?: S.InvokeAutomationRequest, options?: CallOptions): Promise<S.AutomationRun> => c.postOnce(path`/api/v1/automations/${automation}/invoke`, body, options),
  /** Claim the oldest pending run of an automation without a workflow. */
  claim: (automation: string, body: S.ClaimAutomationRunRequest, options?: CallOptions): Promise<S.ClaimedAutomationRun> => c.postOnce(path`/api/v1/automations/${automation}/claim`, body, options),
  /** List the automations that the caller may invoke now. */
  listInvocable: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.InvocableAutomation, S.InvocableAutomationPage> => c.list('/api/v1/invocable_automations', query, options),
  /** List the runs of an automation, newest first. */
  listRuns: (automation: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Only those with this status. */
status?: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled' | undefined; }, options?: CallOptions): Pages<S.AutomationRun, S.ListAutomationRunsPage> => c.list(path`/api/v1/automations/${automation}/runs`, query, options),
  /** List the versions of an automation’s graph, newest first. */
  listVersions: (automation: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.WorkflowVersion, S.WorkflowVersionPage> => c.list(path`/api/v1/automations/${automation}/versions`, query, options),
  /** Get one version of an automation’s graph. */
  getVersion: (automation: string, version: string, options?: CallOptions): Promise<S.WorkflowVersion> => c.get(path`/api/v1/automations/${automation}/versions/${version}`, undefined, options),
  /** List the names of the app’s secrets. */
  listSecrets: (options?: CallOptions): Promise<S.ListAppSecretsResponse> => c.get('/api/v1/secrets', undefined, options),
  /** Set a secret that graphs read as `$secrets.NAME`. */
  putSecret: (name: string, body: S.PutAppSecretRequest, options?: CallOptions): Promise<S.AppSecret> => c.send('PUT', path`/api/v1/secrets/${name}`, body, options),
  /** Delete a secret. */
  deleteSecret: (name: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/secrets/${name}`, undefined, options),
  /** Claim a run that a program executes. */
  claimWork: (body: S.ClaimAutomationWorkRequest, options?: CallOptions): Promise<S.ClaimedWork> => c.postOnce('/api/v1/automation_work/claim', body, options),
});
