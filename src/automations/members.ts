import { formatId } from '../ids.ts';
import { type Attempt, nodeDraft, type Surroundings } from './draft.ts';
import type { Expressions, Scope } from './expressions.ts';
import { itemOf, type RunState } from './fold.ts';
import { bareExpression, type GraphNode, graphLimits, memberProblem, nestedNodes, ownMembers } from './graph.ts';
import type { DraftEntry } from './journal.ts';
import { nodeKinds } from './nodes/index.ts';
import { NodeFailure } from './nodes/kind.ts';
import type { RunRow } from './run-store.ts';
import { redactInput, resolveTemplates } from './template.ts';

/** What a node is told to do: its members, their templates filled in, and what the engine makes of some of them. */

export type Place = { parent: string | undefined; index: number };

/**
 * A node's members with their templates filled in, and what of them the journal may show. Throws NodeFailure and
 * ExpressionError.
 */
export async function resolveMembers(
  node: GraphNode,
  place: Place,
  run: { row: RunRow; state: RunState; loadSecrets(): Promise<Record<string, string>>; expressions: Expressions },
): Promise<{ members: Record<string, unknown>; shown: unknown }> {
  const { row, state } = run;
  const kind = nodeKinds.get(node.kind);
  const own = ownMembers(node);
  const secrets = JSON.stringify(own).includes('$secrets') ? await run.loadSecrets() : {};
  const scope: Scope = {
    input: state.input,
    nodes: state.outputs,
    participants: row.participants ?? {},
    run: {
      id: formatId('automationRun', row.id),
      automation: formatId('automation', row.automationId),
      created_at: row.createdAt.toISOString(),
    },
    secrets,
    ...(itemOf(state, place.parent, place.index) ?? {}),
  };
  const evaluate = (expression: string) => run.expressions.evaluate(expression, scope);
  const members: Record<string, unknown> = {};
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(own)) {
    if (kind?.expressions?.includes(name)) {
      members[name] = (await evaluate(bareExpression(String(value)))) ?? null;
      shown[name] = members[name];
    } else {
      const resolved = await resolveTemplates(value, evaluate);
      // A template that selects nothing leaves an optional member out.
      if (resolved.value !== null || value === null) members[name] = resolved.value;
      shown[name] = resolved.shown;
    }
  }
  const problem = memberProblem(node.kind, members);
  if (problem !== undefined) throw new NodeFailure('invalid_members', `The node's ${problem}.`);
  return { members, shown: redactInput(shown, Object.values(secrets)) };
}

/** What a fan-out must remember: its items. A single value that JSONata gives counts as a list of one. */
export function fanOutPayload(node: GraphNode, members: Record<string, unknown>): Record<string, unknown> {
  if (node.kind === 'parallel') return { items: nestedNodes(node).map((inner) => inner.id) };
  const { items: value } = members;
  const items = value === null || value === undefined ? [] : Array.isArray(value) ? value : [value];
  if (items.length > graphLimits.itemsMax)
    throw new NodeFailure('too_many_items', `There are ${items.length} items; ${graphLimits.itemsMax} are allowed.`);
  if (Buffer.byteLength(JSON.stringify(items)) > graphLimits.outputBytesMax)
    throw new NodeFailure('items_too_large', `The items are larger than ${graphLimits.outputBytesMax} bytes.`);
  return { items, concurrency: members.concurrency ?? 4 };
}

/** What a wait for a signal must remember: its name, and when it gives up. */
export function signalEntry(
  node: GraphNode,
  members: Record<string, unknown>,
  attempt: Attempt,
  around: Surroundings,
): DraftEntry {
  const seconds = node.timeout_seconds;
  const fires = seconds === undefined ? {} : { fires_at: new Date(around.nowMs + seconds * 1_000).toISOString() };
  const entry = nodeDraft(attempt, around, 'signal_waiting', { payload: { name: members.name, ...fires } });
  return seconds === undefined ? entry : { ...entry, timerId: around.newTimerId() };
}
