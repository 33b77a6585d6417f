import type { Static } from 'typebox';
import { turns } from '../../http/limits/turns.ts';
import { AppError, type FieldError, invalidField } from '../../lib/errors.ts';
import type { Scope } from '../../tenancy/caller.ts';
import { ExpressionError, type Expressions } from '../engine/expressions.ts';
import type { automationUpdateSchema } from '../schema.ts';
import { checkGraphInSteps } from './graph.ts';

/** Does the slow checks. Not in a transaction: it waits for processes and turns that the app may have filled. */
export async function checkParts(
  expressions: Expressions,
  { appId }: Scope,
  input: Static<typeof automationUpdateSchema>,
): Promise<void> {
  if (input.input_schema !== undefined) await checkInputSchema(expressions, appId, input.input_schema);
  if (input.workflow !== undefined && input.workflow !== null) await requireGraph(appId, input.workflow);
}

async function checkInputSchema(expressions: Expressions, appId: string, schema: unknown): Promise<void> {
  if (schema === null) return;
  try {
    await expressions.checkSchema(appId, schema, {});
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw invalidField('input_schema', `is not a valid JSON Schema. ${error.message}`);
  }
}

/** Throws a 422 that names every invalid node and member. */
async function requireGraph(appId: string, workflow: unknown): Promise<void> {
  const check = checkGraphInSteps(workflow);
  const problems = await completeInTurns(appId, check);
  if (problems.length === 0) return;
  const fields: FieldError[] = problems.map(({ path, node, message }) => ({
    field: ['workflow', ...path].join('.'),
    message: node === undefined ? message : `node "${node}": ${message}`,
  }));
  const [first] = fields;
  throw new AppError('invalid_parameters', `${first?.field}: ${first?.message}`, { fields });
}

/** Lets other requests pass after every few milliseconds. */
async function completeInTurns<T>(appId: string, steps: Iterator<undefined, T>): Promise<T> {
  const advance = () => {
    const endMs = performance.now() + turnMs;
    let step = steps.next();
    while (!step.done && performance.now() < endMs) step = steps.next();
    return step;
  };
  for (;;) {
    const step = await turns.run(appId, advance, () => 0);
    if (step.done) return step.value;
  }
}

const turnMs = 10;
