import { parentPort } from 'node:worker_threads';
import { Ajv2020 } from 'ajv/dist/2020.js';
import jsonata from 'jsonata';
import { expressionDeadlineMs } from './template.ts';

/**
 * The worker thread that evaluates expressions: one request at a time, answered with JSON text.
 * JSONata's own guardrails bound time, depth and sequence length between its steps; what they cannot see
 * (a regular expression, a native loop, memory) ends with the thread, which the pool then replaces.
 */
export type ExpressionRequest =
  | { kind: 'expression'; expression: string; input: string; bindings: string }
  | { kind: 'schema'; schema: string; value: string };
export type ExpressionReply = { json: string | undefined } | { problem: string };

const resultCharactersMax = 4 * 1024 * 1024;
const compiledMax = 500;
const guardrails = { timeout: expressionDeadlineMs, stack: 1_000, sequence: 1_000_000 };
const compiled = new Map<string, jsonata.Expression>();

parentPort?.on('message', async (request: ExpressionRequest) => {
  let reply: ExpressionReply;
  try {
    reply = request.kind === 'expression' ? await evaluate(request) : checkSchema(request);
  } catch (error) {
    reply = { problem: problemText(error) };
  }
  parentPort?.postMessage(reply);
});

async function evaluate(request: Extract<ExpressionRequest, { kind: 'expression' }>): Promise<ExpressionReply> {
  let expression = compiled.get(request.expression);
  if (!expression) {
    expression = jsonata(request.expression, guardrails);
    if (compiled.size >= compiledMax) compiled.clear();
    compiled.set(request.expression, expression);
  }
  const result: unknown = await expression.evaluate(JSON.parse(request.input), JSON.parse(request.bindings));
  const json = JSON.stringify(result) as string | undefined;
  if (json !== undefined && json.length > resultCharactersMax)
    return { problem: `gives more than ${resultCharactersMax} characters` };
  return { json };
}

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false, addUsedSchema: false });
const validators = new Map<string, ReturnType<typeof ajv.compile>>();

/** Checks a value against a user's JSON Schema: here, because its patterns are as dangerous as expressions. */
function checkSchema(request: Extract<ExpressionRequest, { kind: 'schema' }>): ExpressionReply {
  let validate = validators.get(request.schema);
  if (!validate) {
    const schema = JSON.parse(request.schema) as Record<string, unknown>;
    const { $schema: _dialect, $id: _id, ...rest } = schema;
    validate = ajv.compile(rest);
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

function problemText(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'message' in error && typeof error.message === 'string')
    return error.message;
  return String(error);
}

parentPort?.postMessage('ready');
