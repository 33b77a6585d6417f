import type { CallOptions, Connection } from './connection.ts';
import { QuarryError } from './errors.ts';
import type { AppendedWork, WorkflowJournalEntry, WorkJournalPage } from './generated/schema.ts';
import { pause } from './wait.ts';

/** A fault of the workflow's code itself, such as `duplicate_step`. */
export class WorkflowError extends Error {
  override readonly name = 'WorkflowError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export type Json = Record<string, unknown>;
export type Step = {
  kind: string;
  phase: 'working' | 'waiting' | 'due' | 'completed' | 'failed';
  attempt: number;
  commandId: string;
  retries: number;
  output?: unknown;
  error?: { code?: string; message?: string };
};

const batchEntriesMax = 200;
/** The statuses by which the server says that it will never take a batch. */
const refused = new Set([400, 413, 422]);
const quietMs = 1_000;
const beatSecondsMax = 20;
/** A promise for a run that another worker, or this one later, continues. */
export const never = new Promise<never>(() => {});

/** A claimed run: its id, and the beginning of its journal. */
type Work = {
  run: string | { id: string };
  sequence: number;
  journal: WorkflowJournalEntry[];
  after_cursor?: string | undefined;
};
/** How the holder of a claim reads and writes its run. */
export type Claim = {
  post<T>(path: 'entries' | 'journal', body: Json, options: CallOptions): Promise<T>;
};

/** The claim of a worker, whose key is the credential. */
export function workerClaim(c: Connection, { run, claim }: { run: { id: string }; claim: string }): Claim {
  const paths = { entries: 'entries', journal: 'claimed_journal' };
  return {
    post: (path, body, options) =>
      c.send('POST', `/api/v1/automation_runs/${run.id}/${paths[path]}`, { claim, ...body }, options),
  };
}

/** One claim on a run: replays what its journal has, executes what it has not, and writes that. */
export class Execution {
  readonly #claim: Claim;
  readonly #work: Work;
  readonly #leaseMs: number;
  readonly #stopping: AbortSignal;
  readonly #ending = new AbortController();
  readonly steps = new Map<string, Step>();
  readonly #visited = new Set<string>();
  readonly #waiting = new Map<string, () => void>();
  /** Entries for the next requests, each with what to call when it is stored. */
  #outbox: { entry: Json; stored?: () => void }[] = [];
  #sequence: number;
  #isSending = false;
  #isScheduled = false;
  #isOver = false;
  /** How the run is released with the next request, if it is. */
  #release: Json | undefined;
  /** Steps that this process executes now. */
  #working = 0;
  #done: { resolve: () => void; reject: (error: unknown) => void } = { resolve: () => {}, reject: () => {} };
  #beat: ReturnType<typeof setTimeout> | undefined;
  #beatRequest: AbortController | undefined;

  constructor(claim: Claim, work: Work, leaseSeconds: number, stopping: AbortSignal) {
    this.#claim = claim;
    this.#work = work;
    this.#leaseMs = leaseSeconds * 1_000;
    this.#stopping = stopping;
    this.#sequence = work.sequence;
  }

  get run(): string {
    const { run } = this.#work;
    return typeof run === 'string' ? run : run.id;
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Resolves when the run has ended or was released. */
  async execute(body: (input: unknown) => Promise<unknown>): Promise<void> {
    let input: unknown = null;
    for (
      let page: { journal: WorkflowJournalEntry[]; after_cursor?: string | undefined } | undefined = this.#work;
      page;
    ) {
      for (const entry of page.journal) {
        if (entry.type === 'run_started') input = entry.record.payload;
        else this.#apply(entry);
      }
      const cursor: string | undefined = page.after_cursor;
      page = cursor === undefined ? undefined : await this.#readPage(cursor);
    }
    const over = new Promise<void>((resolve, reject) => {
      this.#done = { resolve, reject };
    });
    const stop = () => this.#stop();
    this.#stopping.addEventListener('abort', stop);
    if (this.#stopping.aborted) stop();
    void (async () => body(input))().then(
      (result) => this.#finish([{ type: 'run_completed', payload: result ?? null }]),
      (error) => this.#finish([{ type: 'run_failed', error: errorOf(error) }]),
    );
    this.schedule();
    try {
      await over;
    } finally {
      this.#stopping.removeEventListener('abort', stop);
      this.#end();
    }
  }

  #readPage(cursor: string): Promise<WorkJournalPage> {
    return this.#post('journal', { after_cursor: cursor });
  }

  #post<T>(path: 'entries' | 'journal', body: Json, signal?: AbortSignal): Promise<T> {
    return this.#claim.post<T>(path, body, { retries: 0, signal, timeoutMs: this.#leaseMs + 30_000 });
  }

  /** The step of the journal, if it has one. Ends the execution if the code does not fit it. */
  visit(id: string, kind: string): Step | undefined {
    this.#visited.add(id);
    const step = this.steps.get(id);
    if (step && step.kind !== kind) this.#misfit({ step: id, kind: step.kind }, { step: id, kind });
    return step;
  }

  /** Adds entries to the next request, which is sent when the workflow's code waits. */
  write(...entries: Json[]): void {
    if (this.signal.aborted) return;
    this.#outbox.push(...entries.map((entry) => ({ entry })));
    this.schedule();
  }

  /** Adds an entry and waits until it is stored. */
  store(entry: Json): Promise<void> {
    if (this.signal.aborted) return never;
    return new Promise<void>((stored) => {
      this.#outbox.push({ entry, stored });
      this.schedule();
    });
  }

  /** Waits until the server has ended the wait of this step. */
  async wait(id: string): Promise<void> {
    while (this.steps.get(id)?.phase === 'waiting') {
      const woken = new Promise<void>((resolve) => this.#waiting.set(id, resolve));
      this.schedule();
      await woken;
      this.#waiting.delete(id);
    }
  }

  /** Runs a step in this process. */
  async work<T>(run: () => Promise<T>): Promise<T> {
    if (this.signal.aborted) return never;
    this.#working++;
    this.schedule();
    try {
      const result = await run();
      return this.signal.aborted ? await never : result;
    } catch (error) {
      if (this.signal.aborted) return await never;
      throw error;
    } finally {
      this.#working--;
      this.schedule();
    }
  }

  /** Sends what there is once the workflow's code has come to rest. */
  schedule(): void {
    if (this.#isScheduled || this.#isSending || this.#isOver) return;
    this.#isScheduled = true;
    const later = (globalThis as { setImmediate?: (run: () => void) => unknown }).setImmediate ?? setTimeout;
    later(() => {
      this.#isScheduled = false;
      this.#send().catch((error) => this.#fail(error));
    });
  }

  async #send(): Promise<void> {
    if (this.#isOver || this.#isSending) return;
    const batch = this.#outbox.splice(0, batchEntriesMax);
    const entries = batch.map(({ entry }) => entry);
    const release = this.#release ?? (this.#rests(entries) ? {} : undefined);
    if (entries.length === 0 && release === undefined) return this.#keepClaim();
    this.#isSending = true;
    clearTimeout(this.#beat);
    this.#beatRequest?.abort();
    let ends = String(entries.at(-1)?.type).startsWith('run_');
    const sent = await this.#append(entries, release).catch((error) => {
      if (!(error instanceof QuarryError && refused.has(error.status ?? 0)) || entries.length === 0) throw error;
      // It will never take these entries.
      ends = true;
      return this.#append([{ type: 'run_failed', error: errorOf(error) }], undefined);
    });
    this.#isSending = false;
    this.#take(sent);
    if (sent.cancel_requested) return this.#cancel();
    if (ends || release !== undefined) return this.#leave();
    for (const { stored } of batch) stored?.();
    this.schedule();
  }

  /** Whether only the server has something to do. */
  #rests(entries: readonly Json[]): boolean {
    if (this.#working > 0 || this.#outbox.length > 0 || this.#waiting.size === 0) return false;
    return !entries.some(({ type, kind }) => type === 'node_started' && kind === 'step');
  }

  /** Sends one batch until there is a response: the same batch again is written once. */
  async #append(entries: readonly Json[], release: Json | undefined): Promise<AppendedWork> {
    const more = release === undefined ? {} : { release };
    const body = () => ({ after_sequence: this.#sequence, entries, ...more });
    const endMs = performance.now() + this.#leaseMs;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#post<AppendedWork>('entries', body());
      } catch (error) {
        if (!(error instanceof QuarryError)) throw error;
        // The server has added entries whose response was lost.
        if (error.code === 'conflict' && typeof error.details.sequence === 'number' && attempt < 5) {
          const empty = { after_sequence: this.#sequence, entries: [] };
          this.#take(await this.#post<AppendedWork>('entries', empty));
          continue;
        }
        const again = error.status === undefined || error.status === 429 || error.status >= 500;
        if (!again || performance.now() > endMs) throw error;
        await pause(error.retryAfterMs ?? Math.min(5_000, 100 * 2 ** attempt));
      }
    }
  }

  #take({ sequence, entries, command_ids }: AppendedWork): void {
    this.#sequence = sequence;
    for (const [id, commandId] of Object.entries(command_ids)) {
      const step = this.steps.get(id);
      if (step) step.commandId = commandId;
    }
    for (const entry of entries) this.#apply(entry);
  }

  /** Renews the claim while steps take long, and hears of a cancellation meanwhile. */
  #keepClaim(): void {
    clearTimeout(this.#beat);
    this.#beat = setTimeout(() => void this.#hear(), Math.min(quietMs, this.#leaseMs / 4));
  }

  async #hear(waits = true): Promise<void> {
    if (this.#isOver || this.#isSending) return;
    const request = new AbortController();
    this.#beatRequest = request;
    const seconds = Math.max(0, Math.min(beatSecondsMax, Math.floor(this.#leaseMs / 3_000)));
    try {
      const body = { after_sequence: this.#sequence, entries: [] };
      const heard = await this.#post<AppendedWork>(
        'entries',
        waits ? { ...body, wait_seconds: seconds } : body,
        request.signal,
      );
      if (this.#isSending || this.#isOver) return;
      this.#take(heard);
      if (heard.cancel_requested) return this.#cancel();
      this.schedule();
    } catch (error) {
      if (request.signal.aborted || this.#isOver) return;
      if (error instanceof QuarryError && error.code === 'claim_lost') return this.#fail(error);
      if (waits && error instanceof QuarryError && error.status === 429) return this.#hear(false);
      this.#keepClaim();
    }
  }

  /** The workflow's function has returned or thrown. */
  #finish(end: Json[]): void {
    if (this.signal.aborted) return;
    const missed = [...this.steps].find(([id]) => !this.#visited.has(id));
    if (missed) this.#misfit({ step: missed[0], kind: missed[1].kind }, { end: end[0]?.type });
    else this.write(...end);
  }

  /** The code does not fit the journal: the run waits for another version of the code. */
  #misfit(expected: Json, found: Json): void {
    this.#outbox = [];
    this.#ending.abort(new WorkflowError('workflow_changed', 'The code does not fit the journal of the run.'));
    this.#hand({ workflow_changed: { expected, found } });
  }

  /** The worker stops: another one, or this one later, continues the run. */
  #stop(): void {
    if (this.signal.aborted) return;
    this.#ending.abort(this.#stopping.reason);
    this.#outbox = this.#outbox.filter(({ entry: { type, kind } }) => type !== 'node_started' || kind !== 'step');
    this.#hand({});
  }

  /** Releases the run with the next request. */
  #hand(release: Json): void {
    this.#release = release;
    this.schedule();
  }

  #cancel(): void {
    this.#ending.abort(new WorkflowError('cancelled', 'The run was cancelled.'));
    this.#leave();
  }

  #fail(error: unknown): void {
    this.#ending.abort(error);
    this.#end();
    this.#done.reject(error);
  }

  #leave(): void {
    this.#end();
    this.#done.resolve();
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#beat);
    this.#beatRequest?.abort();
  }

  /** Applies an entry of the journal. */
  #apply({ type, node_id: id, command_id, record }: WorkflowJournalEntry): void {
    if (id === undefined) return;
    const { payload } = record;
    const { kind, attempt = 1, will_retry, retry } = (record.metadata ?? {}) as Json & { attempt?: number };
    const step = this.steps.get(id);
    if (type === 'node_started')
      this.steps.set(id, {
        kind: step?.kind ?? String(kind),
        phase: (step?.kind ?? kind) === 'step' ? 'working' : 'waiting',
        attempt,
        commandId: command_id ?? '',
        retries: step?.retries ?? (retry as { max_attempts?: number } | undefined)?.max_attempts ?? 1,
      });
    if (!step) return;
    if (type === 'node_completed') Object.assign(step, { phase: 'completed', output: payload });
    else if (type === 'node_failed') Object.assign(step, { phase: will_retry ? 'waiting' : 'failed', error: payload });
    else if (type === 'timer_fired' && step.kind === 'step') step.phase = 'due';
    if (step.phase !== 'waiting') this.#waiting.get(id)?.();
  }
}

/** An error as the journal has it. */
export function errorOf(thrown: unknown): { code: string; message: string } {
  const { code, message } = (thrown ?? {}) as { code?: unknown; message?: unknown };
  const text = typeof message === 'string' ? message : String(thrown);
  return {
    code: typeof code === 'string' && code !== '' ? code.slice(0, 200) : 'failed',
    message: text.slice(0, 10_000),
  };
}
