import { Worker } from 'node:worker_threads';
import type { ExpressionReply, ExpressionRequest } from './expression-thread.ts';

/** What an expression sees: `$` is `input`; the rest is bound by name. */
export type Scope = {
  input: unknown;
  nodes: Readonly<Record<string, unknown>>;
  participants: Readonly<Record<string, unknown>>;
  run: Readonly<Record<string, unknown>>;
  secrets: Readonly<Record<string, unknown>>;
  item?: unknown;
  index?: number;
};

/** An expression that did not give a value. The message is for the author of the graph. */
export class ExpressionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ExpressionError';
  }
}

export type SchemaProblem = { path: string; message: string };

export type Expressions = {
  /** The value of an expression; undefined where it selects nothing. Throws ExpressionError. */
  evaluate(expression: string, scope: Scope): Promise<unknown>;
  /** What of `value` breaks a user's JSON Schema. Throws ExpressionError when the schema itself is none. */
  checkSchema(schema: unknown, value: unknown): Promise<SchemaProblem[]>;
  close(): Promise<void>;
};

const threadCount = 2;
const threadMemoryMb = 64;
/**
 * The guardrails in the thread end most at 100 ms; the thread itself is ended when even they get no turn. Both read
 * the wall clock, so on a machine that is busy with other things the first verdict is not trusted.
 */
const killAfterMs = 1_000;
const schemaKillAfterMs = 3_000;
const triesMax = 2;
const queueMax = 10_000;

const names = ['nodes', 'participants', 'run', 'secrets', 'item', 'index'] as const;

/** Starts no thread until the first expression that needs one. */
export function createExpressions(): Expressions {
  const pool = createPool();
  return {
    async evaluate(expression, scope) {
      const fast = plainPath(expression, scope);
      if (fast) return fast.value;
      const bindings = Object.fromEntries(
        names.filter((name) => expression.includes(`$${name}`)).map((name) => [name, bound(name, expression, scope)]),
      );
      const request = {
        kind: 'expression',
        expression,
        input: JSON.stringify(scope.input ?? null),
        bindings: JSON.stringify(bindings),
      } as const;
      let reply = await pool.ask(request, killAfterMs);
      for (let tries = 1; tries < triesMax && ranOutOfTime(reply); tries++)
        reply = await pool.ask(request, killAfterMs);
      if ('problem' in reply) throw new ExpressionError(`The expression "${shorten(expression)}" ${reply.problem}.`);
      return reply.json === undefined ? undefined : JSON.parse(reply.json);
    },
    async checkSchema(schema, value) {
      const request = {
        kind: 'schema',
        schema: JSON.stringify(schema),
        value: JSON.stringify(value ?? null),
      } as const;
      const reply = await pool.ask(request, schemaKillAfterMs);
      if ('problem' in reply) throw new ExpressionError(`The schema ${reply.problem}.`);
      return JSON.parse(reply.json ?? '[]') as SchemaProblem[];
    },
    close: () => pool.close(),
  };
}

function ranOutOfTime(reply: ExpressionReply): boolean {
  return 'problem' in reply && /timeout|deadline/i.test(reply.problem);
}

/** Only those outputs go to the thread that the expression can name. */
function bound(name: (typeof names)[number], expression: string, scope: Scope): unknown {
  if (name !== 'nodes') return scope[name] ?? null;
  const named = nodesNamedIn(expression);
  if (!named) return scope.nodes;
  return Object.fromEntries(named.filter((id) => Object.hasOwn(scope.nodes, id)).map((id) => [id, scope.nodes[id]]));
}

/** The nodes whose outputs an expression can ask for; undefined when that may be any. */
export function nodesNamedIn(expression: string): string[] | undefined {
  const named = [...expression.matchAll(/\$nodes\s*\.\s*(?:([A-Za-z_]\w*)|`([^`]*)`|"([^"]*)"|'([^']*)')/g)];
  const uses = expression.split('$nodes').length - 1;
  if (named.length !== uses) return undefined;
  return named.map((match) => match[1] ?? match[2] ?? match[3] ?? match[4] ?? '');
}

const pathPattern = /^\$(nodes|participants|run|secrets|item|index)?((?:\.(?:[A-Za-z_]\w*|`[^`]*`))*)$/;

/**
 * The value of a plain path such as `$.a.b` or `$nodes.fetch.json.title`, without a thread. Undefined when the
 * expression is anything else, or when JSONata would do more than walk: it maps a path over the items of an array.
 */
export function plainPath(expression: string, scope: Scope): { value: unknown } | undefined {
  const match = pathPattern.exec(expression);
  if (!match) return undefined;
  const name = match[1] as (typeof names)[number] | undefined;
  let value: unknown = name === undefined ? scope.input : scope[name];
  for (const step of (match[2] ?? '').matchAll(/\.(?:([A-Za-z_]\w*)|`([^`]*)`)/g)) {
    if (Array.isArray(value)) return undefined;
    if (typeof value !== 'object' || value === null) return { value: undefined };
    const member = step[1] ?? step[2] ?? '';
    value = Object.hasOwn(value, member) ? (value as Record<string, unknown>)[member] : undefined;
  }
  // All outputs at once are a picture of now: the object itself goes on to grow, even around what is made of it.
  return { value: value === scope.nodes ? { ...scope.nodes } : value };
}

type Task = {
  request: ExpressionRequest;
  killAfterMs: number;
  resolve(reply: ExpressionReply): void;
};

type Thread = { worker: Worker; ready: Promise<void>; current: Task | undefined; timer: NodeJS.Timeout | undefined };

function createPool() {
  const threads: Thread[] = [];
  const waiting: Task[] = [];
  let closed = false;

  function start(): Thread {
    const worker = new Worker(new URL('./expression-thread.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: threadMemoryMb, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
    });
    // Its first message says that what it imports is loaded.
    const ready = new Promise<void>((resolve) => worker.once('message', () => resolve()));
    const thread: Thread = { worker, ready, current: undefined, timer: undefined };
    worker.on('message', (reply: ExpressionReply | 'ready') => {
      if (reply === 'ready') return;
      settle(thread, reply);
      next(thread);
    });
    worker.on('error', (error) => {
      const memory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      replace(thread, memory ? `needs more than ${threadMemoryMb} MiB of memory` : 'ended its thread');
    });
    worker.on('exit', () => replace(thread, 'ended its thread'));
    worker.unref();
    threads.push(thread);
    return thread;
  }

  function settle(thread: Thread, reply: ExpressionReply): void {
    clearTimeout(thread.timer);
    const task = thread.current;
    thread.current = undefined;
    task?.resolve(reply);
  }

  function replace(thread: Thread, problem: string): void {
    const at = threads.indexOf(thread);
    if (at < 0) return;
    threads.splice(at, 1);
    void thread.worker.terminate();
    settle(thread, { problem });
    if (!closed && waiting.length > 0) next(start());
  }

  function next(thread: Thread): void {
    const task = waiting.shift();
    if (task) void run(thread, task);
  }

  async function run(thread: Thread, task: Task): Promise<void> {
    thread.current = task;
    await thread.ready;
    if (thread.current !== task) return;
    thread.timer = setTimeout(() => replace(thread, `took longer than its deadline`), task.killAfterMs);
    thread.worker.postMessage(task.request);
  }

  return {
    ask(request: ExpressionRequest, killMs: number): Promise<ExpressionReply> {
      if (closed) return Promise.resolve({ problem: 'came while the server was closing' });
      if (waiting.length >= queueMax) return Promise.resolve({ problem: 'found the queue of expressions full' });
      return new Promise((resolve) => {
        const task: Task = { request, killAfterMs: killMs, resolve };
        const idle = threads.find((thread) => thread.current === undefined);
        if (idle) void run(idle, task);
        else if (threads.length < threadCount) void run(start(), task);
        else waiting.push(task);
      });
    },
    async close(): Promise<void> {
      closed = true;
      for (const task of waiting.splice(0)) task.resolve({ problem: 'came while the server was closing' });
      const all = threads.splice(0);
      for (const thread of all) settle(thread, { problem: 'came while the server was closing' });
      await Promise.all(all.map((thread) => thread.worker.terminate()));
    },
  };
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
