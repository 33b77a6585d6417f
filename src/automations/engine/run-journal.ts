import type { Database, Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { formatId, newUuid, parseId } from '../../lib/ids.ts';
import { isTracing, noteEvent } from '../../tracing/trace.ts';
import { closeApprovals } from '../approvals/store.ts';
import { type Graph, graphLimits } from '../definitions/graph.ts';
import { cancelTree } from '../runs/cancel.ts';
import * as store from '../runs/store.ts';
import * as turns from '../runs/turn-store.ts';
import { approvalsOf, type ClosedApproval, closedApprovals } from './approvals.ts';
import { decide } from './decide.ts';
import type { EntryContext } from './draft-entries.ts';
import { applyEntry, foldJournal, type RunState, type RunStatus, timerDueAt } from './fold.ts';
import type { DraftEntry, EntryRecord, JournalEntry } from './journal.ts';
import type { SecretValues } from './secret-values.ts';
import { describeWait } from './waiting-for.ts';

/** Entries to write, the status of the run after them and whether it was running before, and how it sleeps then. */
type Written = {
  expected: number;
  entries: DraftEntry[];
  status: RunStatus;
  wasRunning: boolean;
  rest: SleepState;
  left: Left;
};

type RunJournalDeps = {
  db: Database;
  clock: Clock;
  /** The process that writes, stored in every entry. */
  environment: { worker: string; version: string };
};

/** How a run sleeps; undefined while there is something to do. */
export type SleepState = { wakeAtMs: number | undefined } | undefined;

/** Another process has written to the journal. */
export class JournalConflict extends Error {}

/** The journal could not be written. The node has not failed; the job is retried. */
export class JournalWriteError extends Error {
  override readonly cause: unknown;

  constructor(cause: unknown) {
    super('The journal could not be written.');
    this.cause = cause;
  }
}

/** Entries that are held back, and their characters. */
const heldEntriesMax = 32;
const heldCharactersMax = 64 * 1024;
/** How long entries are held back before the next ones. */
const heldMsMax = 50;
/** As many bytes before its limit, a journal holds nothing back, so that it ends where it would otherwise. */
const limitMarginBytes = 8 * heldCharactersMax;

/** What a write leaves behind: the runs and approvals that no node waits for any longer. */
type Left = { children: string[]; approvals: ClosedApproval[] };

/** A run's journal in one worker: keeps the state that it folds to, and appends to it. */
export class RunJournal {
  readonly row: store.WorkRow;
  readonly graph: Graph;
  readonly #deps: RunJournalDeps;
  readonly #secrets: SecretValues;
  readonly #restAfter: () => SleepState;
  /** Names of deleted secrets that outputs contain, by the node of the output. */
  readonly goneSecrets = new Map<string, string>();
  #state: RunState;
  /** Whether the run's tree has used up its journal entries. */
  treeIsSpent = false;
  /** Entries held back for the next commit. */
  #held: DraftEntry[] = [];
  #heldCharacters = 0;
  #heldSinceMs = 0;
  /** Where the entries that were added last begin among those held back. */
  #lastAt = 0;
  /** What nodes waited for before the entries held back, by command. */
  #awaited: { children: Map<string, string>; approvals: ReturnType<typeof approvalsOf> } | undefined;
  /** Whether this worker has written to the journal, or has read that the run was started. */
  #hasBegun = false;
  /** How the run sleeps, as it was last written. */
  #slept: { waiting: boolean; wakeAtMs: number | undefined };
  readonly #last: store.LastLink;

  /** @param restAfter returns how the run sleeps after the entries just applied. */
  constructor(
    deps: RunJournalDeps,
    row: store.WorkRow,
    graph: Graph,
    secrets: SecretValues,
    restAfter: () => SleepState,
  ) {
    this.#deps = deps;
    this.row = row;
    this.graph = graph;
    this.#secrets = secrets;
    this.#restAfter = restAfter;
    this.#state = foldJournal(graph, []);
    this.#slept = { waiting: row.waiting, wakeAtMs: row.wakeAt?.getTime() };
    this.#last = lastOf(row);
  }

  get state(): RunState {
    return this.#state;
  }

  /** Reads the journal when a worker takes up the run. */
  async load(): Promise<void> {
    if (this.row.sequence > 0) await this.#read(this.row);
  }

  /** Reads the entries of other writers. Returns false if the run was deleted. */
  async reload(): Promise<boolean> {
    this.forget();
    const row = await store.findWork(this.#deps.db, this.row.appId, this.row.id);
    if (!row) return false;
    this.#hasBegun ||= row.status !== 'pending';
    Object.assign(this.#last, lastOf(row));
    await this.#read(row);
    return true;
  }

  async #read({ startedAt }: store.RunRow): Promise<void> {
    const entries = await store.listEntries(this.#deps.db, this.row);
    this.goneSecrets.clear();
    this.#state = foldJournal(
      this.graph,
      entries.map((row) => this.#restoreSecrets(store.readEntry(row))),
    );
    // The entry that a new run keeps is older: the run may have waited for its turn since.
    if (this.#state.startedAtMs !== undefined)
      this.#state.startedAtMs = (startedAt ?? this.#deps.clock.now()).getTime();
  }

  /** The record for storage, with the positions of secrets instead of their values. */
  #redact(record: EntryRecord): EntryRecord {
    const { value, places } = this.#secrets.redact(record.payload);
    const context = this.#secrets.redact(record.context).value as EntryRecord['context'];
    return {
      ...record,
      ...(record.payload === undefined ? {} : { payload: value }),
      ...(context === undefined ? {} : { context }),
      ...(places.length === 0 ? {} : { metadata: { ...record.metadata, redacted: places } }),
      environment: this.#deps.environment,
    };
  }

  /** A stored entry with its secrets restored. */
  #restoreSecrets(entry: JournalEntry): JournalEntry {
    const { record, nodeId } = entry;
    if (entry.type === 'run_started') return { ...entry, record: { ...record, payload: this.#input } };
    const { redacted, ...metadata } = record.metadata ?? {};
    if (redacted === undefined) return entry;
    const { value, gone } = this.#secrets.restore(record.payload, redacted);
    if (nodeId !== undefined && gone[0] !== undefined) this.goneSecrets.set(nodeId, gone[0]);
    return { ...entry, record: { ...record, payload: value, metadata } };
  }

  get #input(): unknown {
    return this.row.input ?? this.row.payload;
  }

  /** Drops the entries held back for the next commit, because another process has written first. */
  forget(): void {
    this.#held = [];
    this.#heldCharacters = 0;
    this.#awaited = undefined;
  }

  /** Whether entries are held back for the next commit. */
  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /**
   * Adds entries that nothing outside the run depends on: they are held back, and written with those that follow.
   * Returns false if they must be written now: they end the run, or are the first of a run that must take its turn, or
   * too much is held back, or for too long.
   */
  hold(entries: readonly DraftEntry[]): boolean {
    this.#add(entries);
    this.#heldCharacters += JSON.stringify(entries).length;
    return (
      this.#state.ending === undefined &&
      (this.#hasBegun || !this.row.limited) &&
      this.#held.length <= heldEntriesMax &&
      this.#heldCharacters <= heldCharactersMax &&
      this.#last.bytes <= graphLimits.journalBytesMax - limitMarginBytes &&
      performance.now() - this.#heldSinceMs <= heldMsMax
    );
  }

  #add(entries: readonly DraftEntry[]): void {
    if (this.#held.length === 0) this.#heldSinceMs = performance.now();
    this.#awaited ??= { children: childRunsOf(this.#state), approvals: approvalsOf(this.#state) };
    if (entries.length > 0) this.#lastAt = this.#held.length;
    this.#apply(entries);
    this.#held.push(...entries);
  }

  /** Waits for work. If it takes long, writes the entries held back meanwhile, because readers wait for them. */
  async flushDuring<T>(work: Promise<T>): Promise<T> {
    if (!this.isHolding) return work;
    const over = work.then(
      () => false,
      () => false,
    );
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, heldMsMax, true);
    });
    const isLate = await Promise.race([over, late]);
    clearTimeout(timer);
    // The work must not outlive its job, even if the journal cannot be written.
    if (isLate) await this.append([]).finally(() => over);
    return work;
  }

  /**
   * Writes entries, together with those held back and the end of the run if it follows. Throws JournalConflict or
   * JournalWriteError.
   * @param db if it is a transaction, everything written through it commits with the entries.
   */
  async append(entries: readonly DraftEntry[], db: Db = this.#deps.db): Promise<void> {
    this.#add(entries);
    const expected = this.#state.sequence - this.#held.length;
    const { children, approvals } = this.#awaited ?? { children: new Map(), approvals: new Map() };
    const all = [...this.#held, ...this.#takeEnd()];
    const before = all.slice(0, this.#lastAt);
    this.forget();
    const rest = this.#restAfter();
    // No node waits any longer for a child whose node has ended before it.
    for (const { type, commandId } of all) if (type === 'child_run_ended') children.delete(commandId ?? '');
    for (const commandId of childRunsOf(this.#state).keys()) children.delete(commandId);
    for (const id of approvalsOf(this.#state).keys()) approvals.delete(id);
    const left = { children: [...children.values()], approvals: closedApprovals(approvals, all) };
    const { status } = this.#state;
    // Streams show each state of a run. One that ends with its first write has been running if a node ended before.
    const wasRunning = !this.#hasBegun && before.some(isOfNode) && store.isTerminal({ status });
    await this.#write(db, { expected, entries: all, status, wasRunning, rest, left });
    if (isTracing()) traceEntries(all);
    this.#slept = { waiting: rest !== undefined, wakeAtMs: rest?.wakeAtMs };
  }

  /** Applies and returns the entry that ends the run, if that follows from the state. */
  #takeEnd(): DraftEntry[] {
    if (this.#state.ending === undefined) return [];
    const end = decide(this.graph, this.#state, this.entryContext());
    const write = end.ended ? undefined : end.commands[0];
    if (write?.do !== 'write') return [];
    this.#apply(write.entries);
    return write.entries;
  }

  #apply(drafts: readonly DraftEntry[]): void {
    for (const draft of drafts) applyEntry(this.graph, this.#state, { ...draft, sequence: this.#state.sequence + 1 });
  }

  async #write(db: Db, { expected, entries, status, wasRunning, rest, left }: Written): Promise<void> {
    const { row } = this;
    const stored = entries.map((entry) => ({ ...entry, record: this.#redact(entry.record) }));
    const last = stored.at(-1);
    const append: store.Append = {
      run: row,
      automation: formatId('automation', row.automationId),
      expected,
      entries: stored,
      last: this.#last,
      status,
      wasRunning,
      ...(last?.type === 'run_completed' ? { result: last.record.payload ?? null } : {}),
      ...(last?.type === 'run_failed' ? { error: last.record.payload } : {}),
      waiting: rest !== undefined,
      waitingFor: rest === undefined ? null : describeWait(this.#state.active.values()),
      ...this.#wakeOf(rest?.wakeAtMs),
      now: this.#deps.clock.now(),
    };
    try {
      const written =
        row.limited || left.children.length > 0 || left.approvals.length > 0
          ? await db.begin((tx) => this.#writeMore(tx, append, left))
          : await store.appendEntries(db, { ...append, isLast: true });
      if (!written) throw new JournalConflict();
    } catch (error) {
      throw error instanceof JournalConflict ? error : new JournalWriteError(error);
    }
    this.#hasBegun = true;
  }

  /** Writes entries with what follows from them in other tables. */
  async #writeMore(tx: Db, append: store.Append, left: Left): Promise<boolean> {
    const { row } = this;
    const written = row.limited ? await this.#writeLimited(tx, append) : await store.appendEntries(tx, append);
    if (!written) return false;
    if (left.approvals.length > 0) await closeApprovals(tx, row, left.approvals, append.now);
    for (const id of left.children) await cancelTree(tx, this.#deps.clock, row.appId, id);
    return true;
  }

  /** Writes a run of an automation with a limit: it starts only if a slot is free, and its end frees the slot. */
  async #writeLimited(tx: Db, append: store.Append): Promise<boolean> {
    const { appId, automationId } = this.row;
    // A pending run may already have entries, which it keeps from another run.
    const begins = this.row.status === 'pending' && !this.#hasBegun;
    const ended = append.status !== 'running';
    if (begins && (await turns.takeTurnOf(tx, this.row, append.now)) !== 'now') return false;
    if (ended) await turns.lockLimit(tx, appId, automationId);
    const written = await store.appendEntries(tx, append);
    if (written && ended) await turns.queueNextPending(tx, this.row, append.now);
    return written;
  }

  /** Records how the run sleeps, unless an entry has already done so. */
  async sleep(wakeAtMs: number | undefined): Promise<void> {
    if (this.#slept.waiting && this.#slept.wakeAtMs === wakeAtMs) return;
    await store.sleepRun(this.#deps.db, this.row, this.#state.sequence, {
      waiting: true,
      waitingFor: describeWait(this.#state.active.values()),
      ...this.#wakeOf(wakeAtMs),
    });
  }

  #wakeOf(wakeAtMs: number | undefined): { wakeAt: Date | null; wakeTimer: store.WakeTimer | null } {
    if (wakeAtMs === undefined) return { wakeAt: null, wakeTimer: null };
    const timer = timerDueAt(this.#state, wakeAtMs);
    const wakeTimer = timer && {
      node_id: timer.nodeId,
      command_id: timer.commandId,
      timer_id: timer.timerId ?? null,
      attempt: timer.attempt,
    };
    return { wakeAt: new Date(wakeAtMs), wakeTimer: wakeTimer ?? null };
  }

  /** The context that decisions and entries need. */
  entryContext(): EntryContext {
    return {
      nowMs: this.#deps.clock.now().getTime(),
      input: this.#input,
      timeoutSeconds: this.row.timeoutSeconds ?? undefined,
      newCommandId: () => formatId('command', newUuid()),
      newTimerId: () => formatId('timer', newUuid()),
      treeIsSpent: this.treeIsSpent,
      journalBytes: this.#last.bytes,
    };
  }
}

function isOfNode({ nodeId }: DraftEntry): boolean {
  return nodeId !== undefined;
}

function lastOf({ linked, link, journalBytes }: store.RunRow): store.LastLink {
  return { sequence: linked, link, bytes: journalBytes };
}

function traceEntries(entries: readonly DraftEntry[]): void {
  for (const { type, nodeId } of entries) noteEvent(type, nodeId === undefined ? {} : { 'quarry.node': nodeId });
}

/** The UUIDs of the runs that nodes of this run wait for, by command. */
function childRunsOf(state: RunState): Map<string, string> {
  const children = new Map<string, string>();
  for (const { phase, child, commandId } of state.active.values()) {
    const id = phase === 'child' && child?.kind === 'run' ? parseId('automationRun', child.id) : undefined;
    if (id !== undefined) children.set(commandId, id);
  }
  return children;
}
