import type { Graph, GraphNode } from '../definitions/graph.ts';
import { approvalNodeId, toolNodeId } from '../nodes/tools.ts';
import type { EntryContext } from './draft-entries.ts';
import type { Execution } from './fold.ts';

/** Calls of one response that run at the same time. */
const concurrentCalls = 8;

type CallStart = {
  do: 'start';
  node: GraphNode;
  attempt: number;
  commandId: string;
  parent: string;
  index: number;
};

/** The calls, and the approvals of calls, that start now. */
export function decideToolCalls(
  graph: Graph,
  active: ReadonlyMap<string, Execution>,
  { commandId, nodeId, generation }: Execution,
  around: EntryContext,
): CallStart[] {
  if (generation === undefined) return [];
  const inProgress = new Set([...active.values()].filter((one) => one.parent === commandId).map(({ index }) => index));
  const starts: CallStart[] = [];
  for (const [index, { name }] of generation.turns.flatMap((turn) => turn.tool_calls).entries()) {
    if (inProgress.size + starts.length >= concurrentCalls) break;
    if (generation.results.has(index) || inProgress.has(index)) continue;
    const approval = generation.approved.has(index) ? undefined : graph.nodes.get(approvalNodeId(nodeId, name));
    const node = approval ?? graph.nodes.get(toolNodeId(nodeId, name));
    if (!node) throw new Error(`The graph has no tool "${name}" in node "${nodeId}".`);
    starts.push({ do: 'start', node, attempt: 1, commandId: around.newCommandId(), parent: commandId, index });
  }
  return starts;
}
