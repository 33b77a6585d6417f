import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import jsonata from 'jsonata';
import { enableLinearPatterns, UnicodePattern } from './linear-pattern.ts';
import { expressionDeadlineMs } from './template.ts';

/**
 * The child process that evaluates expressions: one request at a time; it replies with JSON text.
 * JSONata's own guardrails bound time, depth and sequence length between its steps. Work that they cannot interrupt
 * (a regular expression that is not linear, a native loop, memory) ends with the process, which the pool then replaces.
 */
export type ExpressionRequest =
  | { kind: 'expression'; expression: string; input: string; bindings: string }
  | { kind: 'schema'; schema: string; value: string }
  | { kind: 'file'; text: string };
type ExpressionOf<Kind extends ExpressionRequest['kind']> = Extract<ExpressionRequest, { kind: Kind }>;
/** `limit`: a limit ended the work, and would end it again. */
export type ExpressionReply = { json: string | undefined } | { problem: string; limit?: boolean };
/** Sent once the process has loaded its imports. */
export type ProcessReady = { ready: true };

// Only messages of errors are sent, and a text can have more errors than its memory has room for stacks.
Error.stackTraceLimit = 0;
enableLinearPatterns();

const resultCharactersMax = 4 * 1024 * 1024;
const compiledMax = 500;
const guardrails = { timeout: expressionDeadlineMs, stack: 1_000, sequence: 1_000_000 };
/**
 * JSONata's deadline is one of the wall clock. An expression that met it without having had the processor for that time
 * is evaluated again without: the pool ends this process by the processor time that it has used.
 */
const untimed = { ...guardrails, timeout: 0 };
/** JSONata's codes for errors raised by its guardrails. */
const limitCodes = new Set(['D1011', 'D1012', 'D2014']);
const compiled = new Map<string, jsonata.Expression>();

process.on('message', async (request: ExpressionRequest) => {
  let reply: ExpressionReply;
  try {
    reply = await run(request);
  } catch (error) {
    reply = { problem: problemText(error), limit: limitCodes.has(codeOf(error)) };
  }
  process.send?.(reply);
});

function run(request: ExpressionRequest): Promise<ExpressionReply> | ExpressionReply {
  switch (request.kind) {
    case 'expression':
      return evaluate(request);
    case 'schema':
      return checkSchema(request);
    case 'file':
      return checkFile(request.text);
  }
}

/** Checks the text of an automation. The parser is loaded with the first one. */
async function checkFile(text: string): Promise<ExpressionReply> {
  const { readAutomationFile } = await import('../definitions/source-file.ts');
  return { json: JSON.stringify(readAutomationFile(text).problems) };
}

async function evaluate(request: ExpressionOf<'expression'>): Promise<ExpressionReply> {
  let expression = compiled.get(request.expression);
  if (!expression) {
    expression = jsonata(request.expression, guardrails);
    if (compiled.size >= compiledMax) compiled.clear();
    compiled.set(request.expression, expression);
  }
  const result = await evaluateInTime(expression, request);
  const json = JSON.stringify(result) as string | undefined;
  if (json !== undefined && json.length > resultCharactersMax)
    return { problem: `returns more than ${resultCharactersMax} characters`, limit: true };
  return { json };
}

async function evaluateInTime(expression: jsonata.Expression, request: ExpressionOf<'expression'>) {
  const evaluateWith = async (prepared: jsonata.Expression) =>
    (await prepared.evaluate(JSON.parse(request.input), JSON.parse(request.bindings))) as unknown;
  const before = process.threadCpuUsage?.();
  try {
    return await evaluateWith(expression);
  } catch (error) {
    const used = before && process.threadCpuUsage(before);
    const usedMs = used ? (used.user + used.system) / 1_000 : expressionDeadlineMs;
    if (codeOf(error) !== 'D1012' || usedMs > 0.7 * expressionDeadlineMs) throw error;
    return await evaluateWith(jsonata(request.expression, untimed));
  }
}

const ajv = new Ajv2020({
  ...{ strict: false, allErrors: true, validateFormats: false, addUsedSchema: false },
  code: {
    regExp: Object.assign((source: string, flags: string) => new UnicodePattern(source, flags), { code: '' }),
  },
});
const validators = new Map<string, ReturnType<typeof ajv.compile>>();

/** Checks a value against a user's JSON Schema. It runs here because its patterns are as dangerous as expressions. */
function checkSchema(request: ExpressionOf<'schema'>): ExpressionReply {
  let validate = validators.get(request.schema);
  if (!validate) {
    const schema = JSON.parse(request.schema) as Record<string, unknown>;
    const { $schema: _dialect, $id: _id, ...rest } = schema;
    validate = compileSchema(rest);
    if (validators.size >= compiledMax) validators.clear();
    validators.set(request.schema, validate);
  }
  if (validate(JSON.parse(request.value))) return { json: '[]' };
  const problems = (validate.errors ?? []).slice(0, 50).map((error) => {
    const missing = error.keyword === 'required' ? `/${String(error.params.missingProperty)}` : '';
    const extra = error.keyword === 'additionalProperties' ? `/${String(error.params.additionalProperty)}` : '';
    return {
      path: `${error.instancePath}${missing}${extra}`,
      message: missing ? 'is missing' : extra ? 'is not a known member' : (error.message ?? 'is not valid'),
    };
  });
  return { json: JSON.stringify(problems) };
}

/** Compiles a schema. Throws an error that names the path and the keyword of its first mistake. */
function compileSchema(schema: Record<string, unknown>): ValidateFunction {
  try {
    return ajv.compile(schema);
  } catch (error) {
    const reason = problemText(error);
    const [path = '', why] = ajv.validateSchema(schema)
      ? [findMentioned(schema, reason), reason]
      : describeMistake(ajv.errors ?? []);
    throw new Error(`is not valid at ${path || 'its root'}: ${why}`.slice(0, mistakeCharactersMax));
  }
}

const mistakeCharactersMax = 500;

/** The path and reasons of the deepest mistake. Those above it only say that no alternative matches. */
function describeMistake(errors: readonly ErrorObject[]): [path: string, reasons: string] {
  const depthOf = ({ instancePath }: ErrorObject) => instancePath.split('/').length;
  const deepest = errors.reduce((depth, error) => Math.max(depth, depthOf(error)), 0);
  const own = errors.filter((error) => depthOf(error) === deepest && error.keyword !== 'anyOf');
  const path = own[0]?.instancePath ?? '';
  const reasons = own
    .filter(({ instancePath }) => instancePath === path)
    .map(({ message, params }) =>
      Array.isArray(params.allowedValues) ? `${message} (${params.allowedValues.join(', ')})` : message,
    );
  return [path, [...new Set(reasons)].join(', or ')];
}

/** The path of the first pattern or reference that the message of an error quotes. */
function findMentioned(value: unknown, message: string, path = ''): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const here = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const quoted =
      typeof member === 'string' && /^(pattern|\$ref|\$dynamicRef|\$anchor)$/.test(name) ? member : undefined;
    if (quoted !== undefined && message.includes(quoted)) return here;
    const found = findMentioned(member, message, here);
    if (found !== undefined) return found;
  }
  return undefined;
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

function problemText(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'message' in error && typeof error.message === 'string')
    return error.message;
  return String(error);
}

process.send?.({ ready: true } satisfies ProcessReady);
