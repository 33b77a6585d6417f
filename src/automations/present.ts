import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import { pausedReason } from './definitions/change.ts';
import type { AutomationRow, FullAutomation, GraphRow, SecretRow } from './definitions/store.ts';
import type { EntryRow, RunRow } from './runs/store.ts';
import type { RunSummaryRow } from './runs/visible-store.ts';

/** The automation for a caller who may only invoke it. */
export function presentInvocable(row: AutomationRow) {
  const { id, name, lookupKey, description, inputSchema } = row;
  return {
    ...compact({ id: formatId('automation', id), name, lookup_key: lookupKey, description }),
    input_schema: inputSchema ?? null,
  };
}

export function presentAutomation(row: FullAutomation) {
  return {
    ...compact({
      id: formatId('automation', row.id),
      app: formatId('app', row.appId),
      name: row.name,
      lookup_key: row.lookupKey,
      description: row.description,
      type: row.type,
      status: row.status,
      trigger: row.trigger,
      filter: row.filter,
      schedule: row.schedule,
      timezone: row.timezone,
      invoke_auth: row.invokeAuth,
      run_as_user: row.runAsUserId && formatId('user', row.runAsUserId),
      run_as_agent: row.runAsAgentId && formatId('agent', row.runAsAgentId),
      paused_reason: pausedReason(row),
      org: row.orgId && formatId('org', row.orgId),
      team: row.teamId && formatId('team', row.teamId),
      user: row.userId && formatId('user', row.userId),
      sandbox: presentSandboxId(row.sandboxId),
      max_concurrent_runs: row.maxConcurrentRuns,
      max_pending_runs: row.maxPendingRuns,
      concurrency: row.concurrency,
      rate: row.rate,
      timeout_seconds: row.timeoutSeconds,
      retention: row.retention,
      next_run_at: row.nextTickAt && iso(row.nextTickAt),
      metadata: row.metadata,
      created_at: iso(row.createdAt),
      updated_at: iso(row.updatedAt),
    }),
    workflow: row.workflow ?? null,
    input_schema: row.inputSchema ?? null,
  };
}

type ShownRun = Omit<RunSummaryRow, 'automationName'> & Pick<RunRow, 'payload' | 'participants' | 'result'>;

export function presentRun(row: ShownRun) {
  return compact({
    id: formatId('automationRun', row.id),
    app: formatId('app', row.appId),
    automation: formatId('automation', row.automationId),
    type: row.type,
    status: row.status,
    payload: row.payload,
    participants: row.participants,
    result: row.result,
    error: row.error,
    invoked_by: presentInvoker(row),
    event_id: row.eventId && formatId('event', row.eventId),
    retried_from: row.retriedFrom && formatId('automationRun', row.retriedFrom),
    parent_run: row.parentRunId && formatId('automationRun', row.parentRunId),
    workflow_version: row.graphVersion,
    waiting_for: presentWait(row),
    org: row.orgId && formatId('org', row.orgId),
    team: row.teamId && formatId('team', row.teamId),
    user: row.userId && formatId('user', row.userId),
    sandbox: presentSandboxId(row.sandboxId),
    lease_until: row.leaseUntil && iso(row.leaseUntil),
    started_at: row.startedAt && iso(row.startedAt),
    completed_at: row.completedAt && iso(row.completedAt),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}

/** What the run waits for: first of all, a worker whose code fits its journal. */
function presentWait({ status, waiting, waitingFor, workflowChanged }: ShownRun) {
  if (status !== 'running') return null;
  if (workflowChanged) return { kind: 'worker' as const, workflow_changed: workflowChanged };
  return waiting ? waitingFor : null;
}

/** A run in the list of all runs, without payload and result. */
export function presentRunSummary(row: RunSummaryRow) {
  return {
    ...presentRun({ ...row, payload: null, participants: null, result: null }),
    automation_name: row.automationName,
    waiting: row.status === 'running' && row.waiting,
  };
}

export function presentVersion({ version, graph, scopes, createdAt }: GraphRow) {
  return compact({ version, workflow: graph, scopes, created_at: iso(createdAt) });
}

function presentInvoker({
  invokedByUserId,
  invokedByAgentId,
}: Pick<RunRow, 'invokedByUserId' | 'invokedByAgentId'>): string | null {
  if (invokedByUserId !== null) return formatId('user', invokedByUserId);
  return invokedByAgentId && formatId('agent', invokedByAgentId);
}

export function presentJournal(row: RunRow) {
  return compact({
    id: formatId('journal', row.id),
    status: row.status === 'running' && row.waiting ? 'waiting' : row.status,
    current_sequence: row.sequence,
    started_at: row.startedAt && iso(row.startedAt),
    completed_at: row.completedAt && iso(row.completedAt),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}

/** `withheld`: the caller may see that something happened, but not its content. */
export function presentEntry(row: EntryRow, withheld: boolean) {
  const { payload, context, metadata, ...others } = row.record;
  const { redacted, ...facts } = metadata ?? {};
  const rest = { ...others, ...(metadata === undefined ? {} : { metadata: withheld ? facts : metadata }) };
  return compact({
    id: formatId('journalEntry', row.id),
    sequence: row.sequence,
    type: row.type,
    node_id: row.nodeId,
    command_id: row.commandId,
    timer_id: row.timerId,
    record: withheld
      ? rest
      : { ...(payload === undefined ? {} : { payload }), ...(context === undefined ? {} : { context }), ...rest },
    created_at: iso(row.createdAt),
  });
}

export function presentSecret(row: SecretRow) {
  return { name: row.name, created_at: iso(row.createdAt), updated_at: iso(row.updatedAt) };
}
