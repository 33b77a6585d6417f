import type { Static } from 'typebox';
import type { Database, Db } from '../../db/database.ts';
import { refuseDuplicate } from '../../db/unique.ts';
import { deleteOwner } from '../../deletions/service.ts';
import type { Ledger } from '../../ledger/seal.ts';
import type { Clock } from '../../lib/clock.ts';
import { nextTick } from '../../lib/cron.ts';
import { AppError, found, invalidField } from '../../lib/errors.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { coversScopes } from '../../tenancy/key-scopes.ts';
import { findNamedOwners } from '../../tenancy/references.ts';
import type { Expressions } from '../engine/expressions.ts';
import { queuePendingRuns } from '../runs/turn-store.ts';
import type { automationCreateSchema, automationUpdateSchema } from '../schema.ts';
import { checkParts } from './checks.ts';
import { getAutomation } from './find.ts';
import { isProgram } from './graph.ts';
import { requireGraphScopes } from './graph-scopes.ts';
import type { AutomationRow, AutomationValues, FullAutomation } from './store.ts';
import * as store from './store.ts';
import { applyInput, blank, requireJournalForTurns, toJson, valuesOf } from './values.ts';

type ChangeDeps = { db: Database; clock: Clock; ledger: Ledger; expressions: Expressions };

export type DefinitionChanges = {
  create(caller: Caller, input: Static<typeof automationCreateSchema>): Promise<FullAutomation>;
  update(caller: Caller, name: string, input: Static<typeof automationUpdateSchema>): Promise<FullAutomation>;
  remove(caller: Caller, name: string): Promise<void>;
  activate(caller: Caller, name: string): Promise<FullAutomation>;
  /** Stops new runs; active runs continue. */
  pause(caller: Caller, name: string): Promise<FullAutomation>;
};

export function createDefinitionChanges(deps: ChangeDeps): DefinitionChanges {
  const { db, clock, ledger, expressions } = deps;
  return {
    async create(caller, input) {
      const owners = await findOwners(db, caller, input);
      await checkParts(expressions, caller, input);
      const { appId, sandboxId } = caller;
      const { name, type } = input;
      const begun = { ...blank, ...owners, appId, sandboxId, id: newUuid(), name, type };
      const row = await applyInput(db, clock, caller, begun, input);
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
      return getAutomation(db, caller, formatId('automation', row.id));
    },

    async update(caller, name, input) {
      const { id } = await getAutomation(db, caller, name);
      await checkParts(expressions, caller, input);
      await uniqueKey(() =>
        db.begin(async (tx) => {
          const present = found(await store.findAutomation(tx, caller, { id }, true));
          const row = await applyInput(tx, clock, caller, valuesOf(present), input);
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

    async remove(caller, name) {
      const { id } = await getAutomation(db, caller, name);
      await ledger.noteDeletion(caller, { kind: 'automation', id });
      found(await deleteOwner(db, caller, 'automation', id));
    },

    activate: (caller, name) => changeStatus(deps, caller, name, 'running'),
    pause: (caller, name) => changeStatus(deps, caller, name, 'paused'),
  };
}

/** The owners that a new automation names. A team or user brings its org. */
async function findOwners(db: Db, caller: Caller, input: Static<typeof automationCreateSchema>) {
  const { org, team, user } = await findNamedOwners(db, caller, { org: input.org, team: input.team, user: input.user });
  if (team && user) throw invalidField('user', 'cannot be combined with team');
  const orgId = org?.id ?? (team ?? user)?.orgId ?? null;
  return { orgId, teamId: team?.id ?? null, userId: user?.id ?? null };
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

async function changeStatus(
  { db, clock }: ChangeDeps,
  caller: Caller,
  name: string,
  status: 'running' | 'paused',
): Promise<FullAutomation> {
  const { id } = await getAutomation(db, caller, name);
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
  return getAutomation(db, caller, name);
}

/** Why an automation cannot be activated; undefined if it can. */
export function pausedReason({ identityGone }: Pick<AutomationRow, 'identityGone'>): string | undefined {
  return identityGone === null
    ? undefined
    : `The ${identityGone} that it ran as was deleted. Set run_as_user or run_as_agent, or null.`;
}

function uniqueKey<T>(write: () => Promise<T>): Promise<T> {
  const duplicate = { field: 'lookup_key', message: 'Another automation already uses this lookup key.' };
  return refuseDuplicate('automations_lookup_key', duplicate, write);
}
