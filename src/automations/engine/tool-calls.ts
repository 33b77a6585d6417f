import type { CallResult, Generation, NodeError, ToolTurn } from '../nodes/tool-turns.ts';

/*
 * The calls of tools by a `generate` node. Each response of the model that asks for calls is an entry of the journal,
 * and each call runs as a nested node. When all have ended, the model is asked again. Pure, like `fold` and `decide`.
 */

/** The part of an execution that calls change. */
type Calling<Phase> = { phase: Phase | 'tools' | 'working'; generation?: Generation };

/** Applies `tool_calls_received`. */
export function receiveToolCalls<Phase>(execution: Calling<Phase>, turn: ToolTurn): void {
  execution.generation ??= { turns: [], results: new Map(), approved: new Set() };
  const { generation } = execution;
  const first = callCount(generation);
  generation.turns.push(turn);
  for (const [index, { error }] of turn.tool_calls.entries())
    if (error !== undefined) generation.results.set(first + index, { error });
  execution.phase = phaseOf(execution);
}

/** `tools` while a call has no result; then the model is asked again. */
export function phaseOf({ generation }: { generation?: Generation }): 'tools' | 'working' {
  return generation !== undefined && generation.results.size < callCount(generation) ? 'tools' : 'working';
}

/** Applies the end of a nested node: of a call, or of the approval of one. */
export function endToolCall<Phase>(
  parent: Calling<Phase>,
  { kind, index }: { kind: string; index: number },
  result: CallResult,
): void {
  const { generation } = parent;
  if (generation === undefined) return;
  if (kind !== 'approve' || 'error' in result) generation.results.set(index, result);
  else if ((result.output as { ok?: unknown } | null)?.ok === true) generation.approved.add(index);
  else generation.results.set(index, { error: refusalOf(result.output) });
  parent.phase = phaseOf(parent);
}

function refusalOf(answer: unknown): NodeError {
  const { comment } = (answer as { data?: { comment?: unknown } } | null)?.data ?? {};
  const reason = typeof comment === 'string' && comment !== '' ? ` ${comment}` : '';
  return { code: 'refused', message: `A person refused this call.${reason}` };
}

function callCount({ turns }: Generation): number {
  return turns.reduce((sum, turn) => sum + turn.tool_calls.length, 0);
}
