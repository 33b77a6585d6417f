import { AppError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { ExpressionError } from '../engine/expressions.ts';
import { type NodeError, NodeFailure } from './kind.ts';

/** Of an expression that a deadline or another bound ended: it would end there again, so the node is not retried. */
export const expressionLimitCode = 'expression_limit';

/**
 * What the author of the graph is told about a node that failed. Throws what is no failure of the node: without a
 * database the job is tried again.
 */
export function nodeErrorOf(error: unknown, log: Logger): NodeError {
  if (error instanceof NodeFailure) return { code: error.code, message: error.message };
  if (error instanceof AppError) return { code: error.code, message: error.message };
  if (error instanceof ExpressionError)
    return { code: error.limit ? expressionLimitCode : 'expression_failed', message: error.message };
  if (isLostDatabase(error)) throw error;
  log.error({ err: error }, 'a node failed unexpectedly');
  return { code: 'internal_error', message: 'The node failed for a reason inside the server.' };
}

function isLostDatabase(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  return /^(CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|08|57P|53|40)/.test(code);
}
