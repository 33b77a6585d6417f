import type { Static } from 'typebox';
import type { Database, Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, type FieldError, found, invalidField } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { intersectScopes, type KeyScope } from '../../tenancy/key-scopes.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { getDefinition } from '../definitions/find.ts';
import { type Graph, isProgram } from '../definitions/graph.ts';
import type { AutomationRow } from '../definitions/store.ts';
import * as definitionStore from '../definitions/store.ts';
import type { Expressions } from '../engine/expressions.ts';
import type { JournalEntry } from '../engine/journal.ts';
import { readSecrets } from '../engine/run-secrets.ts';
import { SecretValues } from '../engine/secret-values.ts';
import { wrapSecrets } from '../programs/fragments.ts';
import { insertFragments, listFragments } from '../programs/store.ts';
import { keepRun } from '../retention/store.ts';
import { chooseIdentity, requireRunning } from '../runs/invoker.ts';
import { newRun } from '../runs/new-run.ts';
import { checkPayload } from '../runs/payload.ts';
import { getRun } from '../runs/read.ts';
import * as runStore from '../runs/store.ts';
import { isTerminal, type NewRun, type RunRow } from '../runs/store.ts';
import { wrongState } from '../runs/wrong-state.ts';
import type { retrySchema } from '../schema.ts';
import { copyEntries, replaceOutputs } from './copy.ts';
import { described, foldKept, planRewind, type RewindFrom, RewindMismatch } from './plan.ts';
import { keepSteps } from './program.ts';

type RetryDeps = {
  db: Database;
  clock: Clock;
  expressions: Expressions;
  loadGraph(run: RunRow): Promise<Graph>;
  secrets: Secrets;
};

type RetryInput = NonNullable<Static<typeof retrySchema>>;

/** Where a new run continues an old one, and what it changes. */
type Rewind = {
  caller: Caller;
  run: RunRow;
  automation: AutomationRow;
  from: NonNullable<RetryInput['from']>;
  outputs: Record<string, unknown>;
  version: number | undefined;
};

/** What a new run has from an old one. */
type Kept = {
  drafts: ReturnType<typeof copyEntries>;
  run: Pick<NewRun, 'graphVersion'> & Partial<Pick<NewRun, 'program'>>;
  fragments: Parameters<typeof insertFragments>[2];
};

/** Starts of a node that a 422 lists. */
const startsShownMax = 1_000;

/** New runs from those that have ended: from their beginning, or from a node with the journal before it. */
export type Retries = {
  /**
   * Starts a new run from one that has ended: with the automation's current graph and from the beginning, or with
   * `from` and the old run's graph, keeping what happened before.
   */
  retry(caller: Caller, id: string, input: RetryInput): Promise<RunRow>;
};

export function createRetries(deps: RetryDeps): Retries {
  const { db, clock } = deps;

  /** A new run with the input and the identity of the old one. */
  function again(caller: Caller, run: RunRow, automation: AutomationRow, more: Partial<NewRun> = {}): NewRun {
    return newRun(automation, clock.now(), {
      type: run.type,
      payload: run.payload,
      ...(run.input === null ? {} : { input: run.input }),
      participants: run.participants,
      eventId: run.eventId,
      scheduledAt: run.scheduledAt,
      depth: run.depth,
      eventDepth: run.eventDepth,
      retriedFrom: run.id,
      invokedByUserId: run.invokedByUserId,
      invokedByAgentId: run.invokedByAgentId,
      ...chooseIdentity(automation, { ...run, scopes: retryScopes(caller, run) }),
      ...more,
    });
  }

  async function requirePayload(automation: AutomationRow, payload: unknown): Promise<void> {
    if (automation.type !== 'invoked') throw invalidField('payload', 'is only for runs of type invoked');
    await checkPayload(deps.expressions, automation, payload);
  }

  async function startFrom({ caller, run, automation }: Rewind, kept: Kept, now: Date): Promise<RunRow> {
    return db.begin(async (tx) => {
      found(await keepRun(tx, run));
      const row = await runStore.insertRun(tx, again(caller, run, automation, kept.run));
      await writeCopied(tx, row, kept.drafts, now);
      await insertFragments(tx, row, kept.fragments);
      return found(await runStore.findRun(tx, row.appId, row.id));
    });
  }

  return {
    async retry(caller, id, input) {
      const run = await getRun(db, caller, id);
      checkMembers(input);
      if (!isTerminal(run)) throw wrongState(run, 'cannot be retried before it has ended');
      const automation = await getDefinition(db, caller, formatId('automation', run.automationId));
      requireRunning(automation);
      if (input.from !== undefined) {
        const { from, outputs = {}, workflow_version: version } = input;
        const rewind = { caller, run, automation, from, outputs, version };
        const now = clock.now();
        const kept = await (run.program ? keepOfProgram(deps, rewind, now) : keepOfGraph(deps, rewind, now));
        return startFrom(rewind, kept, now);
      }
      if (input.payload !== undefined) await requirePayload(automation, input.payload);
      const payload = input.payload === undefined ? {} : { payload: input.payload };
      return db.begin(async (tx) => {
        found(await keepRun(tx, run));
        return runStore.insertRun(tx, again(caller, run, automation, payload));
      });
    },
  };
}

function checkMembers({ from, payload, outputs, workflow_version }: RetryInput): void {
  if (from !== undefined && payload !== undefined) throw invalidField('payload', 'cannot be combined with from');
  if (from !== undefined) return;
  if (outputs !== undefined) throw invalidField('outputs', 'requires from');
  if (workflow_version !== undefined) throw invalidField('workflow_version', 'requires from');
}

async function keepOfGraph(
  { db, secrets, loadGraph }: RetryDeps,
  { caller, run, automation, from: wanted, outputs, version }: Rewind,
  now: Date,
): Promise<Kept> {
  if (run.graphVersion === null) throw invalidField('from', 'is only for runs of a workflow');
  const old = await loadGraph(run);
  const graphVersion = version ?? run.graphVersion;
  const written = version === undefined ? undefined : await definitionStore.findGraphVersion(db, automation, version);
  if (version !== undefined && (written === undefined || isProgram(written.graph)))
    throw invalidField('workflow_version', 'is not a version of the automation’s graph');
  const graph = await loadGraph({ ...run, graphVersion });
  const entries = (await runStore.listEntries(db, run)).map(runStore.readEntry);
  const from = readFrom(wanted, run, entries, old.nodes);
  const { kept, open } = planRewind(entries, from);
  const edited = replaceOutputs(kept, outputs, old.nodes, await secretsIn({ db, secrets }, caller, outputs));
  const drafts = copyEntries(edited, { runId: run.id, open, now });
  const numbered = drafts.map((draft, index) => ({ ...draft, sequence: index + 1 }));
  const mismatch = (message: string) =>
    invalidField(version === undefined ? 'outputs' : 'workflow_version', `does not fit: ${message}`);
  try {
    const state = foldKept(graph, numbered, open, old);
    if (wanted !== 'failure' && state.active.size === 0 && state.cursor !== wanted.node)
      throw mismatch(`the new run would continue with ${described(state)} instead of node "${wanted.node}"`);
  } catch (error) {
    if (error instanceof RewindMismatch) throw mismatch(error.message);
    throw error;
  }
  return { drafts, run: { graphVersion }, fragments: [] };
}

/** The values of secrets to find in these outputs. */
async function secretsIn(
  { db, secrets }: Pick<RetryDeps, 'db' | 'secrets'>,
  caller: Caller,
  outputs: object,
): Promise<SecretValues> {
  return new SecretValues(Object.keys(outputs).length === 0 ? {} : (await readSecrets(db, secrets, caller)).values);
}

/** The steps that the old run had done. The program executes the others. */
async function keepOfProgram(
  { db, secrets }: RetryDeps,
  { caller, run, from: wanted, outputs, version }: Rewind,
  now: Date,
): Promise<Kept> {
  if (version !== undefined) throw invalidField('workflow_version', 'is only for runs of a workflow graph');
  const entries = (await runStore.listEntries(db, run)).map(runStore.readEntry);
  const steps = new Set(entries.flatMap(({ nodeId }) => nodeId ?? []));
  const kept = keepSteps(entries, readFrom(wanted, run, entries, steps));
  const values = await secretsIn({ db, secrets }, caller, outputs);
  const edited = replaceOutputs(kept, outputs, steps, values);
  const drafts = copyEntries(edited, { runId: run.id, open: new Set(), now });
  const recorded = new Map((await listFragments(db, run, 0, run.sequence)).map((one) => [one.sequence, one.secrets]));
  const fragments = edited.flatMap(({ sequence, record }, index) => {
    const { replaced, redacted } = record.metadata ?? {};
    const names = (redacted ?? []).map(({ secret }) => secret);
    const own = replaced === true ? wrapSecrets(secrets, values.valuesOf(names)) : recorded.get(sequence);
    return names.length === 0 || own === undefined ? [] : [{ sequence: index + 1, secrets: own }];
  });
  return { drafts, run: { graphVersion: run.graphVersion, program: true }, fragments };
}

/** Entries that one statement writes. */
const copiedBatchCount = 500;

/** Writes the kept entries. The run is pending until its job starts it, which a limit of concurrent runs may delay. */
async function writeCopied(tx: Db, run: RunRow, drafts: ReturnType<typeof copyEntries>, now: Date): Promise<void> {
  const last = { sequence: 0, link: null, bytes: 0 };
  for (let from = 0; from < drafts.length; from += copiedBatchCount) {
    const written = await runStore.appendEntries(tx, {
      run,
      automation: formatId('automation', run.automationId),
      expected: from,
      entries: drafts.slice(from, from + copiedBatchCount),
      last,
      status: 'pending',
      waiting: false,
      wakeAt: null,
      wakeTimer: null,
      now,
    });
    if (!written) throw new Error('The journal of a new run could not be written.');
  }
}

/** Finds where the new run continues. Throws 422 if the old journal has no such place. */
function readFrom(
  wanted: NonNullable<RetryInput['from']>,
  run: RunRow,
  entries: readonly JournalEntry[],
  nodes: { has(id: string): boolean },
): RewindFrom {
  if (wanted === 'failure') {
    if (run.status === 'completed') throw invalidField('from', 'the run has not failed');
    return 'failure';
  }
  if (!nodes.has(wanted.node)) throw invalidField('from.node', 'does not name a node of the workflow');
  const starts = entries.filter(({ type, nodeId }) => type === 'node_started' && nodeId === wanted.node);
  if (wanted.sequence !== undefined) {
    if (!starts.some(({ sequence }) => sequence === wanted.sequence))
      throw invalidField('from.sequence', `is not the sequence of a node_started entry of node "${wanted.node}"`);
    return { sequence: wanted.sequence };
  }
  const [first] = starts;
  if (!first) throw invalidField('from.node', 'did not run');
  if (starts.some(({ commandId }) => commandId !== first.commandId)) throw ambiguous(wanted.node, starts);
  return { sequence: first.sequence };
}

function ambiguous(node: string, starts: readonly JournalEntry[]): AppError {
  const shown = starts.slice(0, startsShownMax).map(({ sequence, commandId, record }) => ({
    sequence,
    command_id: commandId,
    attempt: record.metadata?.attempt ?? 1,
    ...(record.metadata?.index === undefined ? {} : { index: record.metadata.index }),
    at: record.timestamp,
  }));
  const fields: FieldError[] = [
    { field: 'from.sequence', message: `must name one of the ${starts.length} starts of node "${node}"` },
  ];
  const few = shown.slice(0, 10).map(({ sequence }) => sequence);
  const message = `Node "${node}" ran more than once. Name one of its node_started entries as from.sequence: ${few.join(', ')}${starts.length > few.length ? ', …' : ''}.`;
  return new AppError('invalid_parameters', message, { fields, details: { starts: shown } });
}

/**
 * The scopes that bound a retry: those of the first run, and those of the key that retries what was invoked. What an event
 * or a schedule started has no invoker.
 */
function retryScopes(caller: Caller, run: RunRow): KeyScope[] | null {
  const scopes = intersectScopes(run.scopes ?? undefined, run.type === 'invoked' ? caller.scopes : undefined);
  return scopes === undefined ? null : [...scopes];
}
