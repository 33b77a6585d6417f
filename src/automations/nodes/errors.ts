import { isDatabaseUnavailable } from '../../db/errors.ts';
import { AppError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { missingReference } from '../../tenancy/references.ts';
import { graphLimits } from '../definitions/graph.ts';
import { ExpressionError } from '../engine/expressions.ts';
import { type NodeError, NodeFailure } from './kind.ts';

/** A run's tree has used up its limit of runs or journal entries. */
export const treeLimitError: NodeError = {
  code: 'tree_limit',
  message: `A run and the runs that it leads to have at most ${graphLimits.treeRunsMax} runs with ${graphLimits.treeEntriesMax} journal entries.`,
};

/** The code of an expression that a deadline or another limit ended. */
const expressionLimitCode = 'expression_limit';

/** Codes of errors that would recur. A node that failed with one of them is not retried. */
export const nonRetryableCodes: ReadonlySet<string> = new Set([
  expressionLimitCode,
  treeLimitError.code,
  'output_too_deep',
  'not_implemented',
  'token_budget_exceeded',
]);

/**
 * The failure that is shown to the author of the graph. Throws errors that are not the node's: if the database is
 * unavailable, the job is retried.
 */
export function nodeErrorOf(error: unknown, log: Logger): NodeError {
  if (error instanceof NodeFailure)
    return { code: error.code, message: error.message, ...(error.usage ? { usage: error.usage } : {}) };
  const refused = error instanceof AppError ? error : missingReference(error);
  if (refused !== undefined) return { code: refused.code, message: refused.message };
  if (error instanceof ExpressionError)
    return { code: error.limit ? expressionLimitCode : 'expression_failed', message: error.message };
  if (isTemporaryError(error)) throw error;
  log.error({ err: error }, 'A node failed unexpectedly');
  return { code: 'internal_error', message: 'The node failed because of an internal error.' };
}

/** Whether a retry may help: the database or a service was unavailable, or the transaction must be repeated. */
export function isTemporaryError(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  return isDatabaseUnavailable(error) || /^(ECONN|EPIPE|40)/.test(code);
}
