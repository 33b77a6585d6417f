import { AppError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { missingReference } from '../../tenancy/references.ts';
import { graphLimits } from '../definitions/graph.ts';
import { ExpressionError } from '../engine/expressions.ts';
import { type NodeError, NodeFailure } from './kind.ts';

/** A run and all that it has led to have used up what they may start and write. */
export const treeLimit: NodeError = {
  code: 'tree_limit',
  message: `A run and those that it leads to are at most ${graphLimits.treeRunsMax} runs with ${graphLimits.treeEntriesMax} journal entries.`,
};

/** Of an expression that a deadline or another bound ended. */
const expressionLimitCode = 'expression_limit';

/** What would fail again in the same way: a node that failed with one of these is not retried. */
export const finalCodes: ReadonlySet<string> = new Set([expressionLimitCode, treeLimit.code, 'output_too_deep']);

/**
 * What the author of the graph is told about a node that failed. Throws what is no failure of the node: without a
 * database the job is tried again.
 */
export function nodeErrorOf(error: unknown, log: Logger): NodeError {
  if (error instanceof NodeFailure) return { code: error.code, message: error.message };
  const refused = error instanceof AppError ? error : missingReference(error);
  if (refused !== undefined) return { code: refused.code, message: refused.message };
  if (error instanceof ExpressionError)
    return { code: error.limit ? expressionLimitCode : 'expression_failed', message: error.message };
  if (isLostDatabase(error)) throw error;
  log.error({ err: error }, 'a node failed unexpectedly');
  return { code: 'internal_error', message: 'The node failed for a reason inside the server.' };
}

export function isLostDatabase(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  return /^(CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|08|57P|53|40)/.test(code);
}
