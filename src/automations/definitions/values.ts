import type { Static } from 'typebox';
import type { Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { checkSchedule, nextTick, ScheduleError } from '../../lib/cron.ts';
import { invalidField } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { requireScope } from '../../tenancy/key-scopes.ts';
import { fieldId, findAgent, findUser, unknownReference } from '../../tenancy/references.ts';
import { checkRetention } from '../../tenancy/run-retention.ts';
import { checkExpression, ExpressionSyntaxError } from '../engine/template.ts';
import { perMs, type Rate } from '../runs/rate-store.ts';
import type { automationUpdateSchema } from '../schema.ts';
import type { AutomationType, AutomationValues, FullAutomation } from './store.ts';

/** Applies checked input to an automation; `row` is its current state, or a blank one. */
export async function applyInput(
  db: Db,
  clock: Clock,
  caller: Caller,
  row: AutomationValues,
  input: Static<typeof automationUpdateSchema>,
): Promise<AutomationValues> {
  const next: AutomationValues = {
    ...row,
    name: input.name ?? row.name,
    lookupKey: valueAfterPatch(input.lookup_key, row.lookupKey),
    description: valueAfterPatch(input.description, row.description),
    trigger: valueAfterPatch(input.trigger, row.trigger),
    filter: valueAfterPatch(input.filter, row.filter),
    schedule: valueAfterPatch(input.schedule, row.schedule),
    timezone: input.timezone ?? row.timezone,
    invokeAuth: input.invoke_auth ?? row.invokeAuth,
    maxConcurrentRuns: valueAfterPatch(input.max_concurrent_runs, row.maxConcurrentRuns),
    maxPendingRuns: valueAfterPatch(input.max_pending_runs, row.maxPendingRuns),
    timeoutSeconds: valueAfterPatch(input.timeout_seconds, row.timeoutSeconds),
    metadata: input.metadata === undefined ? row.metadata : JSON.stringify(input.metadata),
    concurrency: input.concurrency === undefined ? row.concurrency : toJson(input.concurrency),
    rate: input.rate === undefined ? row.rate : toJson(input.rate),
    retention: input.retention === undefined ? row.retention : toJson(input.retention),
  };
  if (input.run_as_user !== undefined)
    next.runAsUserId = input.run_as_user === null ? null : await runAsUser(db, caller, input.run_as_user);
  if (input.run_as_agent !== undefined)
    next.runAsAgentId = input.run_as_agent === null ? null : await runAsAgent(db, caller, input.run_as_agent);
  if (input.run_as_user !== undefined || input.run_as_agent !== undefined) next.identityGone = null;
  if (next.runAsUserId !== null && next.runAsAgentId !== null)
    throw invalidField('run_as_agent', 'cannot be combined with run_as_user');
  if (input.input_schema !== undefined) next.inputSchema = toJson(input.input_schema);
  checkRetention('retention', input.retention);
  if (input.retention?.files === true)
    requireScope(caller.scopes, { area: 'files', reads: false }, { what: 'retention.files' });
  checkRate(next);
  checkStart(next);
  next.nextTickAt =
    next.status === 'running' && next.schedule !== null
      ? (nextTick(next.schedule, next.timezone, clock.now()) ?? null)
      : null;
  return next;
}

async function runAsUser(db: Db, caller: Caller, id: string): Promise<string> {
  const user = await findUser(db, caller, fieldId('user', 'run_as_user', id));
  if (!user) throw unknownReference('run_as_user');
  return user.id;
}

async function runAsAgent(db: Db, caller: Caller, id: string): Promise<string> {
  const agent = await findAgent(db, caller, fieldId('agent', 'run_as_agent', id));
  if (!agent) throw unknownReference('run_as_agent');
  return agent.id;
}

export const blank: Omit<AutomationValues, 'appId' | 'sandboxId' | 'id' | 'name' | 'type'> = {
  lookupKey: null,
  description: null,
  status: 'draft',
  trigger: null,
  filter: null,
  schedule: null,
  timezone: 'UTC',
  graphVersion: null,
  program: false,
  inputSchema: null,
  invokeAuth: 'any',
  runAsUserId: null,
  runAsAgentId: null,
  identityGone: null,
  orgId: null,
  teamId: null,
  userId: null,
  maxConcurrentRuns: null,
  maxPendingRuns: null,
  timeoutSeconds: null,
  retention: null,
  concurrency: null,
  rate: null,
  metadata: '{}',
  nextTickAt: null,
};

export function valuesOf(row: FullAutomation): AutomationValues {
  return {
    ...row,
    inputSchema: toJson(row.inputSchema),
    retention: toJson(row.retention),
    concurrency: toJson(row.concurrency),
    rate: toJson(row.rate),
    metadata: JSON.stringify(row.metadata),
  };
}

export function toJson(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function valueAfterPatch<T>(input: T | null | undefined, present: T | null): T | null {
  return input === undefined ? present : input;
}

/** Only runs with a journal wait for a turn of their own. */
export function requireJournalForTurns({ concurrency, rate }: AutomationValues, workflow: unknown): void {
  if (workflow !== null && workflow !== undefined) return;
  if (concurrency !== null) throw invalidField('concurrency', 'is only for automations with a workflow');
  if (rate !== null) throw invalidField('rate', 'is only for automations with a workflow');
}

const rateMsMax = 24 * 3_600_000;

function checkRate(row: AutomationValues): void {
  if (row.rate === null) return;
  const rate = JSON.parse(row.rate) as Rate;
  if (perMs(rate) > rateMsMax) throw invalidField('rate.per', 'must be at most 1d');
  const concurrency = row.concurrency === null ? null : (JSON.parse(row.concurrency) as { key: string });
  if (concurrency !== null && rate.key !== undefined && rate.key !== concurrency.key)
    throw invalidField('rate.key', 'must be the key of concurrency, or be left out');
}

/** Requires the members that start runs of this type, and refuses those of other types. */
function checkStart(row: AutomationValues): void {
  const needs: [field: 'trigger' | 'schedule' | 'filter', type: AutomationType, required: boolean][] = [
    ['trigger', 'trigger', true],
    ['filter', 'trigger', false],
    ['schedule', 'scheduled', true],
  ];
  for (const [field, type, required] of needs) {
    if (row.type === type && required && row[field] === null) throw invalidField(field, `is required for type ${type}`);
    if (row.type !== type && row[field] !== null) throw invalidField(field, `is only for type ${type}`);
  }
  if (row.lookupKey === 'runs') throw invalidField('lookup_key', 'is reserved');
  if (row.filter !== null) {
    try {
      checkExpression(row.filter);
    } catch (error) {
      if (error instanceof ExpressionSyntaxError) throw invalidField('filter', error.message);
      throw error;
    }
  }
  try {
    checkSchedule(row.schedule ?? '* * * * *', row.timezone);
  } catch (error) {
    if (!(error instanceof ScheduleError)) throw error;
    throw invalidField(error.message.includes('time zone') ? 'timezone' : 'schedule', error.message);
  }
}
