import type { Static } from 'typebox';
import type { Database, Db } from '../../db/database.ts';
import { refuseDuplicate } from '../../db/unique.ts';
import { turns } from '../../http/limits/turns.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Ledger } from '../../ledger/seal.ts';
import type { Clock } from '../../lib/clock.ts';
import { checkSchedule, nextTick, ScheduleError } from '../../lib/cron.ts';
import { AppError, type FieldError, found, invalidField, notFound } from '../../lib/errors.ts';
import { formatId, newUuid, parseId } from '../../lib/ids.ts';
import type { Caller, Scope } from '../../tenancy/caller.ts';
import { coversScopes, requireScope } from '../../tenancy/key-scopes.ts';
import { fieldId, findAgent, findNamedOwners, findUser, unknownReference } from '../../tenancy/references.ts';
import { requireRoom } from '../../tenancy/room.ts';
import { checkRetention } from '../../tenancy/run-retention.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { ExpressionError, type Expressions } from '../engine/expressions.ts';
import { checkExpression, ExpressionSyntaxError } from '../engine/template.ts';
import { perMs, type Rate } from '../runs/rate-store.ts';
import { queuePendingRuns } from '../runs/turn-store.ts';
import type { automationCreateSchema, automationUpdateSchema } from '../schema.ts';
import { checkGraphInSteps, isProgram } from './graph.ts';
import { requireGraphScopes } from './graph-scopes.ts';
import type { FileProblem } from './source-file.ts';
import type { AutomationRow, AutomationValues, FullAutomation } from './store.ts';
import * as store from './store.ts';

type AutomationDeps = { db: Database; clock: Clock; secrets: Secrets; ledger: Ledger; expressions: Expressions };

export type AutomationService = ReturnType<typeof createAutomationService>;

/** Every run reads all secrets. */
const secretsMax = 500;

/** Definitions of automations, and the app's secrets. Runs are in runs/service.ts. */
export function createAutomationService({ db, clock, secrets, ledger, expressions }: AutomationDeps) {
  /** The automation that a path names by id or lookup key. Throws 404 if there is none. */
  async function get(scope: Scope, name: string): Promise<FullAutomation> {
    const id = parseId('automation', name);
    return found(
      (id === undefined ? undefined : await store.findAutomation(db, scope, { id })) ??
        (await store.findAutomation(db, scope, { lookupKey: name })),
    );
  }

  /** Like `get`, but without the graph; undefined if there is none. */
  async function findDefinition(scope: Scope, name: string): Promise<AutomationRow | undefined> {
    const id = parseId('automation', name);
    return (
      (id === undefined ? undefined : await store.findDefinition(db, scope, { id })) ??
      (await store.findDefinition(db, scope, { lookupKey: name }))
    );
  }

  async function getDefinition(scope: Scope, name: string): Promise<AutomationRow> {
    return found(await findDefinition(scope, name));
  }

  /** Applies checked input to an automation; `row` is its current state, or a blank one. */
  async function applyInput(
    within: Db,
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
      next.runAsUserId = input.run_as_user === null ? null : await runAsUser(within, caller, input.run_as_user);
    if (input.run_as_agent !== undefined)
      next.runAsAgentId = input.run_as_agent === null ? null : await runAsAgent(within, caller, input.run_as_agent);
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

  async function runAsUser(within: Db, caller: Caller, id: string): Promise<string> {
    const user = await findUser(within, caller, fieldId('user', 'run_as_user', id));
    if (!user) throw unknownReference('run_as_user');
    return user.id;
  }

  async function runAsAgent(within: Db, caller: Caller, id: string): Promise<string> {
    const agent = await findAgent(within, caller, fieldId('agent', 'run_as_agent', id));
    if (!agent) throw unknownReference('run_as_agent');
    return agent.id;
  }

  /** Does the slow checks. Not in a transaction: it waits for processes and turns that the app may have filled. */
  async function checkParts(caller: Caller, input: Static<typeof automationUpdateSchema>): Promise<void> {
    if (input.input_schema !== undefined) await checkInputSchema(caller, input.input_schema);
    if (input.workflow !== undefined && input.workflow !== null) await requireGraph(caller.appId, input.workflow);
  }

  async function checkInputSchema({ appId }: Scope, schema: unknown): Promise<void> {
    if (schema === null) return;
    try {
      await expressions.checkSchema(appId, schema, {});
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      throw invalidField('input_schema', `is not a valid JSON Schema. ${error.message}`);
    }
  }

  /** Writes the graph as a new version with the rights of the caller, unless it equals the current one. */
  async function writeGraph(
    tx: Db,
    { scopes }: Caller,
    row: AutomationValues,
    workflow: unknown,
    present: Pick<FullAutomation, 'workflow' | 'graphScopes'>,
  ): Promise<void> {
    if (workflow === undefined) return;
    row.program = isProgram(workflow);
    if (workflow === null) {
      row.graphVersion = null;
      return;
    }
    const isSame = row.graphVersion !== null && JSON.stringify(workflow) === JSON.stringify(present.workflow);
    // Rights come from the writer, so a writer with more of them writes the same graph as another version.
    if (isSame && coversScopes(present.graphScopes ?? undefined, scopes)) return;
    row.graphVersion = await store.nextGraphVersion(tx, row);
    await store.insertGraph(tx, row, row.graphVersion, workflow, scopes);
  }

  async function changeStatus(caller: Caller, name: string, status: 'running' | 'paused'): Promise<FullAutomation> {
    const { id } = await get(caller, name);
    await db.begin(async (tx) => {
      const row = found(await store.findAutomation(tx, caller, { id }, true));
      const reason = pausedReason(row);
      if (status === 'running' && reason !== undefined)
        throw new AppError('invalid_parameters', reason, {
          fields: [{ field: `run_as_${row.identityGone}`, message: 'was deleted' }],
        });
      if (status === 'running') await requireGraphScopes(tx, caller, row);
      const values = valuesOf(row);
      const tick =
        status === 'running' && row.schedule !== null ? nextTick(row.schedule, row.timezone, clock.now()) : undefined;
      const kept = status === 'running' && row.status === 'running' ? row.nextTickAt : undefined;
      await store.updateAutomation(tx, { ...values, status, nextTickAt: kept ?? tick ?? null });
    });
    return get(caller, name);
  }

  return {
    get,
    getDefinition,

    findDefinition,

    async findDefinitionId(scope: Scope, name: string): Promise<string | undefined> {
      return (await findDefinition(scope, name))?.id;
    },

    async listVersions(caller: Caller, automation: string, page: PageRequest) {
      return store.listGraphs(db, await getDefinition(caller, automation), page);
    },

    async getVersion(caller: Caller, automation: string, version: string) {
      const definition = await getDefinition(caller, automation);
      return found(/^[1-9]\d{0,8}$/.test(version) && (await store.findGraphVersion(db, definition, Number(version))));
    },

    async create(caller: Caller, input: Static<typeof automationCreateSchema>): Promise<FullAutomation> {
      const named = await findNamedOwners(db, caller, { org: input.org, team: input.team, user: input.user });
      if (named.team && named.user) throw invalidField('user', 'cannot be combined with team');
      const individual = named.team ?? named.user;
      await checkParts(caller, input);
      const row = await applyInput(
        db,
        caller,
        {
          ...blank,
          appId: caller.appId,
          sandboxId: caller.sandboxId,
          id: newUuid(),
          name: input.name,
          type: input.type,
          orgId: named.org?.id ?? individual?.orgId ?? null,
          teamId: named.team?.id ?? null,
          userId: named.user?.id ?? null,
        },
        input,
      );
      requireJournalForTurns(row, input.workflow ?? null);
      await requireGraphScopes(db, caller, { ...row, workflow: input.workflow });
      await uniqueKey(() =>
        db.begin(async (tx) => {
          await store.insertAutomation(tx, row);
          if (input.workflow === undefined || input.workflow === null) return;
          await writeGraph(tx, caller, row, input.workflow, { workflow: undefined, graphScopes: null });
          await store.updateAutomation(tx, row);
        }),
      );
      return get(caller, formatId('automation', row.id));
    },

    /** Problems of an automation's text. */
    async checkFile({ appId }: Caller, text: string): Promise<FileProblem[]> {
      try {
        return await expressions.checkFile(appId, text);
      } catch (error) {
        if (!(error instanceof ExpressionError)) throw error;
        throw invalidField('text', error.message.replace(/^The text /, '').replace(/\.$/, ''));
      }
    },

    listInvocable: (caller: Caller, page: PageRequest) => store.listInvocable(db, caller, page),

    list: (caller: Caller, filter: store.AutomationFilter, page: PageRequest) =>
      store.listAutomations(db, caller, filter, page),

    async update(caller: Caller, name: string, input: Static<typeof automationUpdateSchema>): Promise<FullAutomation> {
      const { id } = await get(caller, name);
      await checkParts(caller, input);
      await uniqueKey(() =>
        db.begin(async (tx) => {
          const present = found(await store.findAutomation(tx, caller, { id }, true));
          const row = await applyInput(tx, caller, valuesOf(present), input);
          // An unrelated change must not lose a tick that is already due.
          if (row.schedule === present.schedule && row.timezone === present.timezone)
            row.nextTickAt = present.nextTickAt;
          const workflow = input.workflow === undefined ? present.workflow : input.workflow;
          requireJournalForTurns(row, workflow);
          await requireGraphScopes(tx, caller, { ...row, workflow });
          await writeGraph(tx, caller, row, input.workflow, present);
          await store.updateAutomation(tx, row);
          if (row.concurrency !== toJson(present.concurrency) || row.rate !== toJson(present.rate))
            await queuePendingRuns(tx, row.appId, row.id, null);
          else if (row.maxConcurrentRuns !== present.maxConcurrentRuns)
            await queuePendingRuns(tx, row.appId, row.id, row.maxConcurrentRuns);
        }),
      );
      return found(await store.findAutomation(db, caller, { id }));
    },

    async remove(caller: Caller, name: string): Promise<void> {
      const { id } = await get(caller, name);
      await ledger.noteDeletion(caller, { kind: 'automation', id });
      found(await store.deleteAutomation(db, caller, id));
    },

    activate: (caller: Caller, name: string) => changeStatus(caller, name, 'running'),
    /** Stops new runs; active runs continue. */
    pause: (caller: Caller, name: string) => changeStatus(caller, name, 'paused'),

    async putSecret(caller: Scope, name: string, value: string): Promise<store.SecretRow> {
      if (!/^[A-Za-z_][A-Za-z0-9_]{0,99}$/.test(name)) throw notFound();
      const wrapped = secrets.wrap(Buffer.from(value));
      return db.begin(async (tx) => {
        const { appId, sandboxId } = caller;
        const message = `An app or a sandbox has at most ${secretsMax} secrets. Delete one first.`;
        const room = { things: 'secrets', max: secretsMax, message, appId, sandboxId };
        await requireRoom(tx, room, () => store.countOtherSecrets(tx, caller, name));
        return store.upsertSecret(tx, caller, name, wrapped);
      });
    },

    listSecrets: (caller: Scope) => store.listSecrets(db, caller),

    async removeSecret(caller: Scope, name: string): Promise<void> {
      found(await store.deleteSecret(db, caller, name));
    },

    /** The values of `$secrets`, for the engine only. */
    openSecrets(wrapped: Readonly<Record<string, string>>): Record<string, string> {
      const open = (value: string) => secrets.unwrap(Buffer.from(value, 'base64')).plain.toString('utf8');
      return Object.fromEntries(Object.entries(wrapped).map(([name, value]) => [name, open(value)]));
    },
  };
}

const blank: Omit<AutomationValues, 'appId' | 'sandboxId' | 'id' | 'name' | 'type'> = {
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

/** Why an automation cannot be activated; undefined if it can. */
export function pausedReason({ identityGone }: Pick<AutomationRow, 'identityGone'>): string | undefined {
  return identityGone === null
    ? undefined
    : `The ${identityGone} that it ran as was deleted. Set run_as_user or run_as_agent, or null.`;
}

function valuesOf(row: FullAutomation): AutomationValues {
  return {
    ...row,
    inputSchema: toJson(row.inputSchema),
    retention: toJson(row.retention),
    concurrency: toJson(row.concurrency),
    rate: toJson(row.rate),
    metadata: JSON.stringify(row.metadata),
  };
}

function toJson(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function valueAfterPatch<T>(input: T | null | undefined, present: T | null): T | null {
  return input === undefined ? present : input;
}

/** Only runs with a journal wait for a turn of their own. */
function requireJournalForTurns({ concurrency, rate }: AutomationValues, workflow: unknown): void {
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
  const needs: [field: 'trigger' | 'schedule' | 'filter', type: store.AutomationType, required: boolean][] = [
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

/** Throws a 422 that names every invalid node and member. */
async function requireGraph(appId: string, workflow: unknown): Promise<void> {
  const check = checkGraphInSteps(workflow);
  const problems = await completeInTurns(appId, check);
  if (problems.length === 0) return;
  const fields: FieldError[] = problems.map(({ path, node, message }) => ({
    field: ['workflow', ...path].join('.'),
    message: node === undefined ? message : `node "${node}": ${message}`,
  }));
  const [first] = fields;
  throw new AppError('invalid_parameters', `${first?.field}: ${first?.message}`, { fields });
}

/** Lets other requests pass after every few milliseconds. */
async function completeInTurns<T>(appId: string, steps: Iterator<undefined, T>): Promise<T> {
  const advance = () => {
    const endMs = performance.now() + turnMs;
    let step = steps.next();
    while (!step.done && performance.now() < endMs) step = steps.next();
    return step;
  };
  for (;;) {
    const step = await turns.run(appId, advance, () => 0);
    if (step.done) return step.value;
  }
}

const turnMs = 10;

function uniqueKey<T>(write: () => Promise<T>): Promise<T> {
  const duplicate = { field: 'lookup_key', message: 'Another automation already uses this lookup key.' };
  return refuseDuplicate('automations_lookup_key', duplicate, write);
}
