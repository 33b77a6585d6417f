import { AppError, invalidField, requireJsonSize } from '../../lib/errors.ts';
import { limits } from '../../lib/limits.ts';
import type { AutomationRow } from '../definitions/store.ts';
import { ExpressionError, type Expressions } from '../engine/expressions.ts';

/** Throws 422 unless the payload of an invocation has a size and a shape that the automation accepts. */
export async function checkPayload(
  expressions: Expressions,
  { appId, id, inputSchema }: AutomationRow,
  payload: unknown,
): Promise<void> {
  requireJsonSize('payload', payload, limits.payloadBytesMax);
  if (inputSchema !== null) await requireShape(expressions, { appId, id }, inputSchema, 'payload', payload);
}

/** Throws 422 unless the value of a field fits a schema of the automation. */
export async function requireShape(
  expressions: Expressions,
  automation: { appId: string; id: string },
  schema: unknown,
  field: string,
  value: unknown,
): Promise<void> {
  let problems: { path: string; message: string }[];
  try {
    problems = await expressions.checkSchema(automation.appId, schema, value, automation.id);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw invalidField(field, `cannot be checked: ${error.message}`);
  }
  if (problems.length === 0) return;
  const fields = problems.map(({ path, message }) => ({ field: `${field}${path.replaceAll('/', '.')}`, message }));
  throw new AppError('invalid_parameters', `${fields[0]?.field}: ${fields[0]?.message}`, { fields });
}
