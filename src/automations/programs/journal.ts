import type { Database, Db } from '../../db/database.ts';
import { announceChange } from '../../http/streams/sse.ts';
import type { Clock } from '../../lib/clock.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { graphLimits } from '../definitions/graph.ts';
import { draftEntry, type EntryContext } from '../engine/draft-entries.ts';
import type { DraftEntry, EntryRecord } from '../engine/journal.ts';
import type { RunSecrets } from '../engine/run-secrets.ts';
import type { SecretValues } from '../engine/secret-values.ts';
import type { TreeBudget } from '../engine/tree-budget.ts';
import { describeWait } from '../engine/waiting-for.ts';
import { treeLimitError } from '../nodes/errors.ts';
import { cancelTree } from '../runs/cancel.ts';
import * as runStore from '../runs/store.ts';
import * as turns from '../runs/turn-store.ts';
import { wrapSecrets } from './fragments.ts';
import { applyProgramEntry, emptyProgramState, hasWork, nextDueMs, type ProgramState } from './state.ts';
import * as store from './store.ts';

type ProgramJournalDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  treeBudget: TreeBudget;
  /** The process that writes, stored in its entries. */
  environment: { worker: string; version: string };
  runSecrets: RunSecrets;
};

/** The kind of topic that announces a run which may be claimed; its id is that of the automation. */
export const readyTopic = 'program';

/** Entries reserved for the end of a run that reaches its limit. */
const reservedEntries = 10;

export type RunKey = { appId: string; id: string };

/** One transaction on a run of a program: its state, and the entries to write. */
export class ProgramChange {
  readonly tx: Db;
  readonly row: runStore.WorkRow;
  readonly work: store.ProgramWork;
  readonly state: ProgramState;
  readonly around: EntryContext;
  readonly secretValues: SecretValues;
  readonly drafts: DraftEntry[] = [];
  /** Whether the worker that holds the claim makes the change, and so gets what it adds in the response. */
  isByHolder = false;
  readonly #environment: ProgramJournalDeps['environment'];
  readonly #treeBudget: TreeBudget;

  constructor(
    tx: Db,
    row: runStore.WorkRow,
    work: store.ProgramWork,
    state: ProgramState,
    secretValues: SecretValues,
    { clock, environment, treeBudget }: ProgramJournalDeps,
  ) {
    this.tx = tx;
    this.row = row;
    this.work = work;
    this.state = state;
    this.#environment = environment;
    this.#treeBudget = treeBudget;
    this.secretValues = secretValues;
    this.around = {
      nowMs: clock.now().getTime(),
      input: row.input ?? row.payload,
      timeoutSeconds: row.timeoutSeconds ?? undefined,
      newCommandId: () => formatId('command', newUuid()),
      newTimerId: () => formatId('timer', newUuid()),
    };
  }

  get now(): Date {
    return new Date(this.around.nowMs);
  }

  get hasEnded(): boolean {
    return this.state.status !== 'pending' && this.state.status !== 'running';
  }

  /** Whether a worker holds the run. */
  get isClaimed(): boolean {
    const { claim, leaseUntil } = this.work;
    return claim !== null && leaseUntil !== null && leaseUntil.getTime() > this.around.nowMs;
  }

  /** Adds entries that are written when the change ends. */
  add(entries: readonly DraftEntry[], environment: Record<string, unknown> = this.#environment): void {
    for (const entry of entries) {
      const draft = { ...entry, record: { ...entry.record, environment } };
      applyProgramEntry(this.state, { ...draft, sequence: this.state.sequence + 1 });
      this.drafts.push(draft);
    }
  }

  /** Fails the run if it has reached a limit. */
  async endAtLimit(): Promise<void> {
    if (this.hasEnded) return;
    const { journalEntriesMax, journalBytesMax } = graphLimits;
    const limit =
      this.state.sequence > journalEntriesMax - reservedEntries
        ? { code: 'journal_limit', message: `The run's journal reached its limit of ${journalEntriesMax} entries.` }
        : this.row.journalBytes > journalBytesMax
          ? { code: 'journal_limit', message: `The run's journal reached its limit of ${journalBytesMax} bytes.` }
          : (await this.#treeBudget.isSpent(this.row))
            ? treeLimitError
            : undefined;
    if (limit !== undefined) this.add([draftEntry(this.around, 'run_failed', { payload: limit })]);
  }
}

/** Reads and writes the journals of runs that programs execute. All writers come here, one at a time for each run. */
export class ProgramJournal {
  readonly #deps: ProgramJournalDeps;
  readonly #states = new StateCache();

  constructor(deps: ProgramJournalDeps) {
    this.#deps = deps;
  }

  /**
   * Changes a run in one transaction, which may be repeated. Returns undefined if the run or its work does not exist.
   * The limit of the automation is locked first, then the run.
   */
  async change<T>(
    key: RunKey & { automationId: string },
    apply: (change: ProgramChange) => Promise<T>,
  ): Promise<T | undefined> {
    const { db } = this.#deps;
    const done = await db.begin(async (tx) => {
      // Sent at once. PostgreSQL runs them in this order.
      const [, , row, work] = await Promise.all([
        turns.lockLimit(tx, key.appId, key.automationId),
        runStore.lockRun(tx, key.appId, key.id),
        runStore.findWork(tx, key.appId, key.id),
        store.findWorkOf(tx, key),
      ]);
      if (!row || !work) return undefined;
      const state = await this.#load(tx, row);
      const before = JSON.stringify(work);
      const { finder } = await this.#deps.runSecrets.of(tx, row, row.secretsVersion);
      const change = new ProgramChange(tx, row, work, state, finder, this.#deps);
      const result = await apply(change);
      if (change.hasEnded && change.drafts.length > 0) work.readyAt = null;
      const isReady = work.readyAt !== null && work.readyAt <= change.now;
      await Promise.all([
        this.#write(change),
        JSON.stringify(work) === before ? undefined : store.saveWorkOf(tx, key, work),
        isReady ? announceChange(tx, readyTopic, key.appId, key.automationId) : undefined,
      ]);
      return { result, state };
    });
    if (done === undefined) return undefined;
    this.#states.keep(key.id, done.state);
    return done.result;
  }

  async #load(tx: Db, row: runStore.RunRow): Promise<ProgramState> {
    // Taken, because a transaction that fails leaves a state behind that was never written.
    const known = this.#states.take(row.id);
    const state = known !== undefined && known.sequence <= row.sequence ? known : emptyProgramState();
    if (state.sequence < row.sequence)
      for (const entry of await store.listFacts(tx, row, state.sequence)) applyProgramEntry(state, entry);
    state.status = row.status;
    // The entry that a new run keeps is older: the run may have waited for a worker since.
    if (row.startedAt !== null) state.startedAtMs = row.startedAt.getTime();
    return state;
  }

  /** Writes the drafts with the state that follows, and makes the run ready or due. */
  async #write(change: ProgramChange): Promise<void> {
    const { tx, row, state, drafts, now } = change;
    const ended = change.hasEnded;
    const waiting = !ended && !change.isClaimed && !hasWork(state);
    const dueMs = ended || state.status === 'pending' ? undefined : nextDueMs(state, row.timeoutSeconds);
    const waitingFor = waiting ? describeWait(state.open.values()) : null;
    const sleep = { waiting, waitingFor, wakeAt: dueMs === undefined ? null : new Date(dueMs), wakeTimer: null };
    if (drafts.length === 0 && state.status === row.status) {
      // A run that waits for its turn is woken when that comes.
      if (!ended && state.status !== 'pending' && (waiting !== row.waiting || dueMs !== row.wakeAt?.getTime()))
        await runStore.sleepRun(tx, row, row.sequence, sleep);
      return;
    }
    const fragments: { sequence: number; secrets: Buffer }[] = [];
    const entries = drafts.map((draft, index) => {
      const { record, values } = redact(draft.record, change.secretValues);
      if (values !== undefined)
        fragments.push({ sequence: row.sequence + index + 1, secrets: wrapSecrets(this.#deps.secrets, values) });
      return { ...draft, record };
    });
    const last = entries.at(-1);
    const written = await runStore.appendEntries(tx, {
      run: row,
      automation: formatId('automation', row.automationId),
      expected: row.sequence,
      entries,
      last: { sequence: row.linked, link: row.link, bytes: row.journalBytes },
      status: state.status,
      ...(last?.type === 'run_completed' ? { result: last.record.payload ?? null } : {}),
      ...(last?.type === 'run_failed' ? { error: last.record.payload } : {}),
      ...sleep,
      now,
    });
    // The run is locked, so no other process has written.
    if (!written) throw new Error('The journal of a program did not take its entries.');
    await store.insertFragments(tx, row, fragments);
    if (ended) await this.#end(change);
    // The holder of the claim may wait for what the server adds.
    else if (change.isClaimed && !change.isByHolder) await announceChange(tx, 'run', row.appId, row.id);
  }

  /** Ends what the run leaves behind: its place under the automation's limit, and children that it waited for. */
  async #end({ tx, row, now }: ProgramChange): Promise<void> {
    await turns.queueNextPending(tx, row, now);
    for (const id of await runStore.listChildRuns(tx, row)) await cancelTree(tx, this.#deps.clock, row.appId, id);
  }
}

function redact(
  record: EntryRecord,
  secretValues: SecretValues,
): { record: EntryRecord; values: Record<string, string> | undefined } {
  const { value, places } = secretValues.redact(record.payload);
  const context = secretValues.redact(record.context).value as EntryRecord['context'];
  const redacted: EntryRecord = {
    ...record,
    ...(record.payload === undefined ? {} : { payload: value }),
    ...(context === undefined ? {} : { context }),
    ...(places.length === 0 ? {} : { metadata: { ...record.metadata, redacted: places } }),
  };
  if (places.length === 0) return { record: redacted, values: undefined };
  return { record: redacted, values: secretValues.valuesOf(places.map(({ secret }) => secret)) };
}

const statesKeptMax = 1_000;
const stepsKeptMax = 200_000;

/** The latest states, so that a batch of entries does not read the whole journal. A wrong one costs only time. */
class StateCache {
  readonly #states = new Map<string, ProgramState>();
  #steps = 0;

  take(runId: string): ProgramState | undefined {
    const state = this.#states.get(runId);
    if (state === undefined) return undefined;
    this.#states.delete(runId);
    this.#steps -= state.steps.size;
    return state;
  }

  keep(runId: string, state: ProgramState): void {
    this.take(runId);
    if (state.status !== 'running') return;
    this.#states.set(runId, state);
    this.#steps += state.steps.size;
    for (const oldest of this.#states.keys()) {
      if (this.#states.size <= statesKeptMax && this.#steps <= stepsKeptMax) return;
      this.take(oldest);
    }
  }
}
