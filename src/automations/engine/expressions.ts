import { hash } from 'node:crypto';
import { type Timeouts, usualTimeouts } from '../../lib/timeouts.ts';
import type { FileProblem } from '../definitions/source-file.ts';
import { ExpressionPool } from './expression-pool.ts';
import type { ExpressionReply } from './expression-process.ts';

/** The values that an expression can read: `$` is `input`, and the others are bound by name. */
export type Scope = {
  input: unknown;
  nodes: Readonly<Record<string, unknown>>;
  participants: Readonly<Record<string, unknown>>;
  run: Readonly<Record<string, unknown>>;
  secrets: Readonly<Record<string, unknown>>;
  item?: unknown;
  index?: number;
};

/** An expression failed. The message is for the author of the graph. */
export class ExpressionError extends Error {
  /** A deadline or another limit ended it, and would end it again. */
  readonly limit: boolean;

  constructor(message: string, limit: boolean) {
    super(message);
    this.name = 'ExpressionError';
    this.limit = limit;
  }
}

type SchemaProblem = { path: string; message: string };

export type Expressions = {
  /**
   * Evaluates an expression; undefined if it selects nothing. `lane` is the app that it belongs to. An automation
   * evaluates one expression at a time.
   * Throws ExpressionError, and AppError `unavailable` if too much work of this lane waits.
   */
  evaluate(lane: string, expression: string, scope: Scope, automation?: string): Promise<unknown>;
  /**
   * Returns how `value` violates a user's JSON Schema. A schema without an automation has a turn of its own.
   * Throws like `evaluate`, also for an invalid schema.
   */
  checkSchema(lane: string, schema: unknown, value: unknown, automation?: string): Promise<SchemaProblem[]>;
  /** Returns the problems of an automation's text, the first 100. Throws like `evaluate`. */
  checkFile(lane: string, text: string): Promise<FileProblem[]>;
  /** Whether the next expression of this automation waits for an earlier one. */
  mustWait(lane: string, automation: string): boolean;
  close(): Promise<void>;
};

/** Characters that an expression can read. They are serialised, and more would exceed the memory of its process. */
const bindingsCharactersMax = 16 * 1024 * 1024;

const names = ['nodes', 'participants', 'run', 'secrets', 'item', 'index'] as const;

/** Starts no process before the first expression that needs one. */
export function createExpressions(timeouts: Readonly<Timeouts> = usualTimeouts): Expressions {
  const pool = new ExpressionPool(timeouts);
  return {
    async evaluate(lane, expression, scope, automation) {
      const fast = evaluatePlainPath(expression, scope);
      if (fast) return fast.value;
      const bindings = Object.fromEntries(
        names.filter((name) => expression.includes(`$${name}`)).map((name) => [name, bound(name, expression, scope)]),
      );
      const request = {
        kind: 'expression',
        expression,
        input: JSON.stringify(scope.input ?? null),
        bindings: serializeBindings(bindings, expression),
      } as const;
      const json = readReply(
        await pool.run({ lane, turn: automation ?? expression, request }),
        `The expression "${shorten(expression)}"`,
      );
      return json === undefined ? undefined : JSON.parse(json);
    },
    async checkSchema(lane, schema, value, automation) {
      const request = { kind: 'schema', schema: JSON.stringify(schema), value: JSON.stringify(value ?? null) } as const;
      const turn = automation ?? hash('sha256', request.schema, 'base64');
      const json = readReply(await pool.run({ lane, turn, request }), 'The schema');
      return JSON.parse(json ?? '[]') as SchemaProblem[];
    },
    async checkFile(lane, text) {
      const reply = await pool.run({ lane, turn: 'files', request: { kind: 'file', text } });
      return JSON.parse(readReply(reply, 'The text') ?? '[]') as FileProblem[];
    },
    mustWait: (lane, automation) => pool.mustWait(lane, automation),
    close: () => pool.close(),
  };
}

function readReply(reply: ExpressionReply, what: string): string | undefined {
  if ('problem' in reply) throw new ExpressionError(`${what} ${reply.problem}.`, reply.limit === true);
  return reply.json;
}

/** The bindings as JSON. Stops at the limit, so that the rest of many large outputs is never serialised. */
function serializeBindings(bindings: Record<string, unknown>, expression: string): string {
  let characters = 0;
  const write = (value: unknown): string => {
    const json = JSON.stringify(value);
    characters += json.length;
    if (characters > bindingsCharactersMax)
      throw new ExpressionError(
        `The expression "${shorten(expression)}" reads more than ${bindingsCharactersMax} characters of outputs: name the nodes that it needs.`,
        true,
      );
    return json;
  };
  const writeMembers = (members: Record<string, unknown>, writeOne: (value: unknown) => string): string =>
    `{${Object.entries(members)
      .map(([name, value]) => `${JSON.stringify(name)}:${writeOne(value)}`)
      .join(',')}}`;
  const { nodes, ...others } = bindings;
  const writeOne = (value: unknown) =>
    value === nodes ? writeMembers(value as Record<string, unknown>, write) : write(value);
  return writeMembers(nodes === undefined ? others : { nodes, ...others }, writeOne);
}

/** Sends the process only the outputs that the expression can name. */
function bound(name: (typeof names)[number], expression: string, scope: Scope): unknown {
  if (name !== 'nodes') return scope[name] ?? null;
  const named = findReferencedNodes(expression);
  if (!named) return scope.nodes;
  return Object.fromEntries(named.filter((id) => Object.hasOwn(scope.nodes, id)).map((id) => [id, scope.nodes[id]]));
}

/** The nodes whose outputs an expression can read; undefined if it may read any. */
export function findReferencedNodes(expression: string): string[] | undefined {
  const named = [...expression.matchAll(/\$nodes\s*\.\s*(?:([A-Za-z_]\w*)|`([^`]*)`|"([^"]*)"|'([^']*)')/g)];
  const uses = expression.split('$nodes').length - 1;
  if (named.length !== uses) return undefined;
  return named.map((match) => match[1] ?? match[2] ?? match[3] ?? match[4] ?? '');
}

const pathPattern = /^\$(nodes|participants|run|secrets|item|index)?((?:\.(?:[A-Za-z_]\w*|`[^`]*`))*)$/;

/**
 * Evaluates a plain path such as `$.a.b` or `$nodes.fetch.json.title` without a process. Undefined for any other
 * expression, and for a path through an array, which JSONata maps over the items.
 */
export function evaluatePlainPath(expression: string, scope: Scope): { value: unknown } | undefined {
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
  // A copy, because the object itself grows later, and the value must not.
  return { value: value === scope.nodes ? { ...scope.nodes } : value };
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
