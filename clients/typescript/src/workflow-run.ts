import { type DataSchema, type InputOf, jsonSchemaOf } from './schemas.ts';
import { type Execution, errorOf, type Json, never, type Step, WorkflowError } from './workflow-execution.ts';

/** Why a step failed for good. Thrown where the workflow called it. */
export class StepError extends Error {
  override readonly name = 'StepError';
  readonly step: string;
  readonly code: string;

  constructor(step: string, error: { code?: string; message?: string }) {
    super(error.message ?? 'The step failed.');
    this.step = step;
    this.code = error.code ?? 'failed';
  }
}

export type StepOptions = {
  /** Attempts in total, or also the pauses between them. An error with `retryable: false` is not tried again. */
  retry?: number | { max_attempts: number; initial_seconds?: number; factor?: number };
};
export type ApproveOptions<S extends DataSchema = DataSchema> = {
  /** What people are asked. */
  question: string;
  /** The JSON Schema of the answer. Without it, people answer `ok` and may add a `comment`. */
  form?: S;
  /** Ids of users and teams who may answer. */
  users?: readonly string[];
  teams?: readonly string[];
  /** Those who have one of these roles in `org` may answer, too. Default: the organization of the automation. */
  roles?: readonly ('admin' | 'member' | 'viewer')[];
  org?: string;
  /** The user who invoked the run may not answer. */
  excludeInvoker?: boolean;
  /** Seconds, `10m`, `12h` or `7d`. By default, the run waits for an answer until it ends. */
  timeout?: number | string;
};
export type Answer<T> = {
  /** Whether the answer has `ok: true`, or no `ok` at all. */
  ok: boolean;
  data: T;
  /** Who answered, and when. */
  by: string;
  at: string;
  /** The id of the approval. */
  approval: string;
};
type YesOrNo = { ok: boolean; comment?: string };

export type StepTools = {
  /** The same for all attempts of this step: its idempotency key in other systems. */
  commandId: string;
  attempt: number;
  /** The id of the run, which uploads of its files name as `automation_run`. */
  run: string;
  /** Aborted when the run is cancelled, the claim is lost or the worker stops. */
  signal: AbortSignal;
};

/** A workflow in code: executed step by step, and continued after any crash behind the last step that ended. */
export type Workflow = {
  /** The lookup key or id of the automation. */
  readonly name: string;
  readonly body: (run: Run, input: never) => Promise<unknown>;
};

type Branch<T> = (run: Run) => Promise<T>;

const outputBytesMax = 256 * 1024;

/** A run, or a branch of it: what a workflow's function works with. */
export class Run {
  readonly #execution: Execution;
  readonly #scope: string;
  readonly #counts = new Map<string, number>();
  readonly #open = new Set<string>();

  constructor(execution: Execution, scope: string) {
    this.#execution = execution;
    this.#scope = scope;
  }

  /** Aborted when the run is cancelled, the claim is lost or the worker stops. */
  get abortSignal(): AbortSignal {
    return this.#execution.signal;
  }

  /**
   * Does something once and records what it returns. It is executed at least once: a crash before its result is stored
   * repeats it with the same `commandId`. Throws StepError if its last attempt has failed.
   */
  step<T>(name: string, fn: (tools: StepTools) => T | Promise<T>): Promise<T>;
  step<T>(name: string, options: StepOptions, fn: (tools: StepTools) => T | Promise<T>): Promise<T>;
  step<T>(name: string, second: unknown, third?: unknown): Promise<T> {
    const fn = (third ?? second) as (tools: StepTools) => T | Promise<T>;
    const { retry } = (third === undefined ? {} : second) as StepOptions;
    const policy = typeof retry === 'number' ? { max_attempts: retry } : retry;
    return this.#once(name, async (id) => {
      const x = this.#execution;
      let step = x.visit(id, 'step');
      if (x.signal.aborted) return never;
      if (!step) {
        step = { kind: 'step', phase: 'due', attempt: 0, commandId: '', retries: policy?.max_attempts ?? 1 };
        x.steps.set(id, step);
      }
      for (;;) {
        if (step.phase === 'completed') return step.output as T;
        if (step.phase === 'failed') throw new StepError(id, step.error ?? {});
        if (step.phase === 'waiting') await x.wait(id);
        else {
          if (step.phase === 'due') {
            const more = step.attempt === 0 && policy ? { retry: policy } : {};
            step.phase = 'working';
            step.attempt++;
            await x.store({ type: 'node_started', node_id: id, kind: 'step', ...more });
          }
          await this.#attempt(id, step, fn);
        }
      }
    });
  }

  async #attempt<T>(id: string, step: Step, fn: (tools: StepTools) => T | Promise<T>): Promise<void> {
    const x = this.#execution;
    const { commandId, attempt } = step;
    try {
      const output = await x.work(async () => plain(await fn({ commandId, attempt, run: x.run, signal: x.signal })));
      Object.assign(step, { phase: 'completed', output });
      x.write({ type: 'node_completed', node_id: id, payload: output });
    } catch (thrown) {
      const error = errorOf(thrown);
      const final = (thrown as { retryable?: unknown } | null)?.retryable === false;
      Object.assign(step, { phase: !final && attempt < step.retries ? 'waiting' : 'failed', error });
      x.write({ type: 'node_failed', node_id: id, error, ...(final ? { retryable: false } : {}) });
    }
  }

  /** Does branches at the same time, each with a run of its own for its steps. */
  all<T extends Record<string, Branch<unknown>>>(branches: T): Promise<{ [K in keyof T]: Awaited<ReturnType<T[K]>> }> {
    const open = Object.entries(branches).map(async ([key, fn]) => [key, await fn(this.#branch(key))] as const);
    return Promise.all(open).then(Object.fromEntries);
  }

  /** Does the same for each item at the same time. `key` names an item: it must stay the same from run to run. */
  map<I, T>(items: readonly I[], { key }: { key: (item: I) => string }, fn: (item: I, run: Run) => Promise<T>) {
    return Promise.all(items.map(async (item) => fn(item, this.#branch(key(item)))));
  }

  #branch(key: string): Run {
    return new Run(this.#execution, `${this.#place(key, '/')}/`);
  }

  /** Sleeps, without a process: seconds, `10m`, `12h` or `7d`, or until a date. */
  async sleep(name: string, duration: number | string | Date): Promise<void> {
    await this.#wait(name, 'sleep', duration instanceof Date ? { until: duration } : { seconds: secondsOf(duration) });
  }

  /** Waits for a signal and returns its payload. Throws StepError with `timeout` if it does not arrive in time. */
  signal<T = unknown>(name: string, options: { timeout?: number | string } = {}): Promise<T> {
    const { timeout } = options;
    const more = timeout === undefined ? {} : { timeout_seconds: secondsOf(timeout) };
    return this.#wait(name, 'signal', { name, ...more }) as Promise<T>;
  }

  /** Asks people and returns the first answer. Throws StepError with `timeout` if there is none in time. */
  approve(name: string, options: ApproveOptions & { form?: undefined }): Promise<Answer<YesOrNo>>;
  approve<const S extends DataSchema>(name: string, options: ApproveOptions<S>): Promise<Answer<InputOf<S>>>;
  approve(name: string, { form, excludeInvoker, timeout, ...asked }: ApproveOptions): Promise<Answer<unknown>> {
    const shape = form === undefined ? {} : { form: jsonSchemaOf(form, 'input') };
    const excluded = excludeInvoker === undefined ? {} : { exclude_invoker: excludeInvoker };
    const more = timeout === undefined ? {} : { timeout_seconds: secondsOf(timeout) };
    return this.#wait(name, 'approve', { ...asked, ...shape, ...excluded, ...more }) as Promise<Answer<unknown>>;
  }

  /** Starts a run of another automation and returns its result. */
  child<T = unknown>(name: string, automation: string, payload: object = {}): Promise<T> {
    return this.#wait(name, 'child', { automation, payload }) as Promise<T>;
  }

  /** The time, the same whenever the run continues. */
  async now(): Promise<Date> {
    return new Date(await this.#value('$now', () => new Date().toISOString()));
  }

  /** A random number from 0 to 1, the same whenever the run continues. */
  random(): Promise<number> {
    return this.#value('$random', Math.random);
  }

  /** A random UUID, the same whenever the run continues. */
  id(): Promise<string> {
    return this.#value('$id', () => crypto.randomUUID());
  }

  #value<T>(name: string, make: () => T): Promise<T> {
    const x = this.#execution;
    const id = this.#place(name);
    const step = x.visit(id, 'value');
    if (x.signal.aborted) return never;
    if (step) return Promise.resolve(step.output as T);
    const output = make();
    x.steps.set(id, { kind: 'value', phase: 'completed', attempt: 1, commandId: '', retries: 1, output });
    x.write(
      { type: 'node_started', node_id: id, kind: 'value' },
      { type: 'node_completed', node_id: id, payload: output },
    );
    return Promise.resolve(output);
  }

  #wait(name: string, kind: string, members: Json): Promise<unknown> {
    return this.#once(name, async (id) => {
      const x = this.#execution;
      let step = x.visit(id, kind);
      if (x.signal.aborted) return never;
      if (!step) {
        step = { kind, phase: 'waiting', attempt: 1, commandId: '', retries: 1 };
        x.steps.set(id, step);
        x.write({ type: 'node_started', node_id: id, kind, ...members });
      }
      await x.wait(id);
      if (step.phase === 'failed') throw new StepError(id, step.error ?? {});
      return step.output;
    });
  }

  async #once<T>(name: string, run: (id: string) => Promise<T>): Promise<T> {
    if (this.#open.has(name))
      throw new WorkflowError('duplicate_step', `A step "${name}" is already open: use run.all or run.map.`);
    const id = this.#place(name);
    this.#open.add(name);
    try {
      return await run(id);
    } finally {
      this.#open.delete(name);
    }
  }

  /** The id of a step or branch in the journal: its scope, its name, and which of that name it is. */
  #place(name: string, kind = ''): string {
    if (name === '' || /[#/\p{Cc}]/u.test(name))
      throw new WorkflowError('invalid_name', `"${name}" cannot name a step.`);
    const count = (this.#counts.get(name + kind) ?? 0) + 1;
    this.#counts.set(name + kind, count);
    return `${this.#scope}${name}${count === 1 ? '' : `#${count}`}`;
  }
}

/** What the journal keeps of a value: the same as it is when the run continues. */
function plain<T>(value: T): T {
  const text = JSON.stringify(value ?? null);
  if (new TextEncoder().encode(text).length > outputBytesMax)
    throw Object.assign(new Error(`The output is larger than ${outputBytesMax} bytes.`), { code: 'output_too_large' });
  return JSON.parse(text) as T;
}

const units: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };

function secondsOf(duration: number | string): number {
  if (typeof duration === 'number') return duration;
  const [, count, unit] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(duration) ?? [];
  if (count === undefined) throw new WorkflowError('invalid_duration', `"${duration}" is not a duration such as 10m.`);
  return Number(count) * (units[unit ?? ''] ?? 1);
}
